# Entry point of the image made from Kafka's jars: KAFKA_NODE_ID=1 becomes node.id=1, as in Apache's image,
# the data folder is formatted if it is new, and the broker takes this process's place, so that it gets SIGTERM.
set -euo pipefail
properties=/var/lib/kafka/server.properties
data=/var/lib/kafka/data

: >"$properties"
while IFS='=' read -r -d '' name value; do
  case $name in
    KAFKA_HEAP_OPTS | KAFKA_LOG_DIRS) ;;
    KAFKA_*)
      key=${name#KAFKA_}
      key=${key,,}
      echo "${key//_/.}=$value" >>"$properties"
      ;;
  esac
done < <(env --null)
echo "log.dirs=$data" >>"$properties"

run() {
  # shellcheck disable=SC2086  # the options are several words
  exec java ${KAFKA_HEAP_OPTS:--Xmx512m} -cp '/opt/kafka/libs/*' "$@"
}

if [ ! -f "$data/meta.properties" ]; then
  (run kafka.tools.StorageTool format --cluster-id="${CLUSTER_ID:?CLUSTER_ID is not set}" --config="$properties")
fi
run kafka.Kafka "$properties"
