"""Between bytes and values: the formats an author names at a source or a sink."""

from connectors.formats.avro import Avro
from connectors.formats.json import AnyJson, Json
from connectors.formats.raw import Raw
from connectors.formats.text import Text

__all__ = ["AnyJson", "Avro", "Json", "Raw", "Text"]
