"""What the author of a job writes: streams, keys, functions with state, and where results go."""

from processor.contracts.checkpoint_hook import CheckpointHook
from processor.contracts.clock import TimeDomain
from processor.contracts.policy import Fail, Skip
from processor.contracts.sink import Guarantee
from processor.operators.aggregates import Aggregate, Count, Keyed, Sum
from processor.operators.aggregating_state import Aggregated, AggregatingState
from processor.operators.broadcast_context import BroadcastContext
from processor.operators.context import Context, Timers
from processor.operators.process_function import (
    KeyedBroadcastProcess,
    KeyedCoProcess,
    KeyedProcess,
    SideOutput,
)
from processor.operators.transform_function import RecordContext, Transform
from processor.records.batch import Key
from processor.state.broadcast_map import BroadcastMap, Writable
from processor.state.declarations import ValueState
from processor.state.expiry import Expiry
from processor.state.items import Items
from processor.state.keyed_view import Value
from processor.state.list_state import Listed, ListState
from processor.state.map_state import Mapped, MapState
from processor.state.operator_state import BroadcastState, SplitListState, UnionListState
from processor.state.reducing_state import Reduced, ReducingState
from processor.stream.broadcast_stream import BroadcastConnected
from processor.stream.connected_streams import ConnectedStreams
from processor.stream.job import Job
from processor.stream.keyed_stream import KeyedStream
from processor.stream.source_stream import SourceStream
from processor.stream.stream import BroadcastStream, Processed, Stream

__all__ = [
    "Aggregate",
    "Aggregated",
    "AggregatingState",
    "BroadcastConnected",
    "BroadcastContext",
    "BroadcastMap",
    "BroadcastState",
    "BroadcastStream",
    "CheckpointHook",
    "ConnectedStreams",
    "Context",
    "Count",
    "Expiry",
    "Fail",
    "Guarantee",
    "Items",
    "Job",
    "Key",
    "Keyed",
    "KeyedBroadcastProcess",
    "KeyedCoProcess",
    "KeyedProcess",
    "KeyedStream",
    "ListState",
    "Listed",
    "MapState",
    "Mapped",
    "Processed",
    "RecordContext",
    "Reduced",
    "ReducingState",
    "SideOutput",
    "Skip",
    "SourceStream",
    "SplitListState",
    "Stream",
    "Sum",
    "TimeDomain",
    "Timers",
    "Transform",
    "UnionListState",
    "Value",
    "ValueState",
    "Writable",
]
