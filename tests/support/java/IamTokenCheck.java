import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.time.Instant;
import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Base64;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerExtensionsValidatorCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallback;

/** Takes tokens as brokers of MSK do: each is a request whose Signature Version 4 is computed anew. */
public final class IamTokenCheck implements AuthenticateCallbackHandler {
    private static final String KEY = System.getProperty("test.iam.key", "");
    private static final String SECRET = System.getProperty("test.iam.secret", "");
    private static final DateTimeFormatter DATE = DateTimeFormatter.ofPattern("yyyyMMdd'T'HHmmss'Z'");
    private static final Set<String> UNSIGNED = Set.of("X-Amz-Signature", "User-Agent");

    /** An agent is on the class path of its JVM; it does nothing else. */
    public static void premain(String arguments) { }

    @Override
    public void configure(Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> jaas) { }

    @Override
    public void close() { }

    @Override
    public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
        for (Callback callback : callbacks) {
            if (callback instanceof OAuthBearerValidatorCallback asked) {
                try {
                    asked.token(checked(asked.tokenValue()));
                } catch (Exception refused) {
                    asked.error("invalid_token", null, null);
                }
            } else if (callback instanceof OAuthBearerExtensionsValidatorCallback asked) {
                asked.inputExtensions().map().keySet().forEach(asked::valid);
            } else {
                throw new UnsupportedCallbackException(callback);
            }
        }
    }

    private static OAuthBearerToken checked(String token) throws Exception {
        URI url = URI.create(new String(Base64.getUrlDecoder().decode(token), StandardCharsets.UTF_8));
        Map<String, String> query = new TreeMap<>();
        for (String part : url.getRawQuery().split("&")) {
            int at = part.indexOf('=');
            query.put(part.substring(0, at), part.substring(at + 1));
        }
        String[] credential = query.get("X-Amz-Credential").split("%2F");
        Instant begins = LocalDateTime.parse(query.get("X-Amz-Date"), DATE).toInstant(ZoneOffset.UTC);
        Instant ends = begins.plusSeconds(Long.parseLong(query.get("X-Amz-Expires")));
        require(credential[0].equals(KEY) && credential[3].equals("kafka-cluster"));
        require(query.get("Action").equals("kafka-cluster%3AConnect"));
        require(Instant.now().isBefore(ends) && Instant.now().plusSeconds(300).isAfter(begins));
        require(url.getHost().equals("kafka." + credential[2] + ".amazonaws.com"));
        byte[] given = HexFormat.of().parseHex(query.get("X-Amz-Signature"));
        require(MessageDigest.isEqual(given, signature(url.getHost(), credential, query)));
        return new Token(token, credential[0], begins.toEpochMilli(), ends.toEpochMilli());
    }

    private static byte[] signature(String host, String[] credential, Map<String, String> query) throws Exception {
        StringBuilder canonical = new StringBuilder();
        for (Map.Entry<String, String> each : query.entrySet()) {
            if (!UNSIGNED.contains(each.getKey())) {
                canonical.append(canonical.length() == 0 ? "" : "&").append(each.getKey()).append('=').append(each.getValue());
            }
        }
        String request = String.join("\n", "GET", "/", canonical, "host:" + host, "", "host", hash(""));
        String scope = String.join("/", credential[1], credential[2], credential[3], credential[4]);
        String text = String.join("\n", "AWS4-HMAC-SHA256", query.get("X-Amz-Date"), scope, hash(request));
        byte[] key = ("AWS4" + SECRET).getBytes(StandardCharsets.UTF_8);
        for (int part = 1; part <= 4; part++) {
            key = mac(key, credential[part]);
        }
        return mac(key, text);
    }

    private static String hash(String text) throws Exception {
        byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
        return HexFormat.of().formatHex(digest);
    }

    private static byte[] mac(byte[] key, String text) throws Exception {
        Mac mac = Mac.getInstance("HmacSHA256");
        mac.init(new SecretKeySpec(key, "HmacSHA256"));
        return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    private static void require(boolean holds) {
        if (!holds) {
            throw new IllegalArgumentException("refused");
        }
    }

    private record Token(String value, String principalName, Long startTimeMs, long lifetimeMs)
            implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Set.of();
        }
    }
}
