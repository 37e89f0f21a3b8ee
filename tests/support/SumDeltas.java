import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * Adds up the deltas of a counter's topic by key in a Kafka Streams topology, and prints KEY=TOTAL lines,
 * sorted, when all that the topic held at the start is committed.
 *
 * <pre>java -cp 'LIBS/*' SumDeltas.java BROKERS TOPIC STATE-FOLDER</pre>
 */
public class SumDeltas {
  public static void main(String[] args) throws Exception {
    String brokers = args[0], topic = args[1], application = "sum-" + topic;
    StreamsBuilder builder = new StreamsBuilder();
    builder.stream(topic, Consumed.with(Serdes.String(), Serdes.String()))
        .mapValues(value -> Long.parseLong(value))
        .groupByKey(Grouped.with(Serdes.String(), Serdes.Long()))
        .reduce(Long::sum, Materialized.as("totals"));
    Properties properties = new Properties();
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, args[2]);
    properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
    properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    properties.put("auto.offset.reset", "earliest");
    try (Admin admin = Admin.create(properties);
        KafkaStreams streams = new KafkaStreams(builder.build(), properties)) {
      Map<TopicPartition, OffsetSpec> latest =
          admin.describeTopics(java.util.List.of(topic)).allTopicNames().get().get(topic).partitions().stream()
              .collect(Collectors.toMap(p -> new TopicPartition(topic, p.partition()), p -> OffsetSpec.latest()));
      var ends = admin.listOffsets(latest, new ListOffsetsOptions(IsolationLevel.READ_COMMITTED)).all().get();
      streams.start();
      long deadline = System.nanoTime() + 60_000_000_000L;
      for (boolean done = false; !done; Thread.sleep(50)) {
        if (System.nanoTime() > deadline) throw new IllegalStateException("not at the end within 60 s");
        Map<TopicPartition, OffsetAndMetadata> committed =
            admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get();
        done = ends.entrySet().stream().allMatch(end -> end.getValue().offset() == 0
            || committed.get(end.getKey()) != null
                && committed.get(end.getKey()).offset() >= end.getValue().offset());
      }
      TreeMap<String, Long> totals = new TreeMap<>();
      var store = streams.store(StoreQueryParameters.fromNameAndType(
          "totals", QueryableStoreTypes.<String, Long>keyValueStore()));
      try (var all = store.all()) {
        all.forEachRemaining(entry -> totals.put(entry.key, entry.value));
      }
      totals.forEach((key, total) -> System.out.println(key + "=" + total));
    }
  }
}
