import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.processor.api.ContextualFixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/**
 * What users of Kafka Streams deduplicate with: a window store (RocksDB) of the ids of a day, exactly once, two
 * threads. Ends when all that the input held at the start is committed.
 *
 * <pre>java -cp 'LIBS/*' StreamsDedup.java BROKERS INPUT OUTPUT APPLICATION</pre>
 */
public class StreamsDedup {
  private static final Duration HORIZON = Duration.ofHours(24);

  private static class Dedup extends ContextualFixedKeyProcessor<String, String, String> {
    private WindowStore<String, Long> seen;

    @Override
    public void init(FixedKeyProcessorContext<String, String> context) {
      super.init(context);
      seen = context.getStateStore("seen");
    }

    @Override
    public void process(FixedKeyRecord<String, String> record) {
      // Where the id is in this benchmark's events: no parser slows this down.
      int from = record.value().indexOf("\"id\":\"") + 6;
      String id = record.value().substring(from, record.value().indexOf('"', from));
      long now = record.timestamp();
      try (var found = seen.fetch(id, now - HORIZON.toMillis(), now + HORIZON.toMillis())) {
        if (found.hasNext()) return;
      }
      seen.put(id, now, now);
      context().forward(record);
    }
  }

  public static void main(String[] args) throws Exception {
    String brokers = args[0], input = args[1], output = args[2], application = args[3];
    Path state = Files.createTempDirectory("lethe-streams-bench");
    var store = Stores.persistentWindowStore("seen", HORIZON, HORIZON, false);
    StreamsBuilder builder = new StreamsBuilder();
    builder.addStateStore(Stores.windowStoreBuilder(store, Serdes.String(), Serdes.Long()));
    builder.stream(input, Consumed.with(Serdes.String(), Serdes.String()))
        .processValues(Dedup::new, "seen")
        .to(output, Produced.with(Serdes.String(), Serdes.String()));
    Properties properties = new Properties();
    properties.put(StreamsConfig.APPLICATION_ID_CONFIG, application);
    properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
    properties.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
    properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
    properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
    properties.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
    properties.put("auto.offset.reset", "earliest");
    try (Admin admin = Admin.create(properties);
        KafkaStreams streams = new KafkaStreams(builder.build(), properties)) {
      Map<TopicPartition, OffsetSpec> latest =
          admin.describeTopics(List.of(input)).allTopicNames().get().get(input).partitions().stream()
              .collect(Collectors.toMap(p -> new TopicPartition(input, p.partition()), p -> OffsetSpec.latest()));
      var ends = admin.listOffsets(latest).all().get();
      streams.start();
      for (boolean done = false; !done; Thread.sleep(50)) {
        if (streams.state() == KafkaStreams.State.ERROR) throw new IllegalStateException("Kafka Streams failed");
        Map<TopicPartition, OffsetAndMetadata> committed =
            admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get();
        done = ends.entrySet().stream().allMatch(end -> committed.get(end.getKey()) != null
            && committed.get(end.getKey()).offset() >= end.getValue().offset());
      }
    } finally {
      try (var files = Files.walk(state)) {
        files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
      }
    }
  }
}
