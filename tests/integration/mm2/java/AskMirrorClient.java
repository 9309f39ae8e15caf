import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.mirror.MirrorClient;
import org.apache.kafka.connect.mirror.RemoteClusterUtils;

/**
 * Asks everything MirrorMaker 2's client can tell about a target cluster and prints it as JSON.
 *
 * <p>Arguments: bootstrap servers of the target, alias of the remote cluster, group, and then any
 * settings of the client as name=value.
 */
public final class AskMirrorClient {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    private AskMirrorClient() {}

    public static void main(String[] arguments) throws Exception {
        String remote = arguments[1];
        String group = arguments[2];
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", arguments[0]);
        for (int at = 3; at < arguments.length; at++) {
            String[] parts = arguments[at].split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        Map<TopicPartition, OffsetAndMetadata> offsets =
            RemoteClusterUtils.translateOffsets(settings, remote, group, TIMEOUT);
        StringBuilder json = new StringBuilder("{");
        json.append("\"offsets\":").append(offsetsAsJson(offsets));
        Set<String> upstream = RemoteClusterUtils.upstreamClusters(settings);
        json.append(",\"upstream\":").append(asJson(upstream));
        json.append(",\"hops\":{\"nowhere\":")
            .append(RemoteClusterUtils.replicationHops(settings, "nowhere"));
        for (String alias : upstream) {
            json.append(",").append(quoted(alias)).append(":")
                .append(RemoteClusterUtils.replicationHops(settings, alias));
        }
        json.append("}");
        json.append(",\"heartbeats\":").append(asJson(RemoteClusterUtils.heartbeatTopics(settings)));
        json.append(",\"checkpoints\":").append(asJson(RemoteClusterUtils.checkpointTopics(settings)));
        try (MirrorClient client = new MirrorClient(settings)) {
            json.append(",\"remoteTopics\":").append(asJson(client.remoteTopics()));
            json.append(",\"remoteTopicsOf\":").append(asJson(client.remoteTopics(remote)));
            json.append(",\"again\":").append(
                offsetsAsJson(client.remoteConsumerOffsets(group, remote, TIMEOUT)));
        }
        System.out.println(json.append("}"));
    }

    private static String offsetsAsJson(Map<TopicPartition, OffsetAndMetadata> offsets) {
        return offsets.entrySet().stream()
            .map(one -> quoted(one.getKey().toString()) + ":[" + one.getValue().offset() + ","
                + quoted(one.getValue().metadata()) + "]")
            .collect(Collectors.joining(",", "{", "}"));
    }

    private static String asJson(Set<String> names) {
        return new TreeSet<>(names).stream()
            .map(AskMirrorClient::quoted)
            .collect(Collectors.joining(",", "[", "]"));
    }

    private static String quoted(String text) {
        return "\"" + text.replace("\\", "\\\\").replace("\"", "\\\"") + "\"";
    }
}
