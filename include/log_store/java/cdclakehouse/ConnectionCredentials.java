package cdclakehouse;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentials;
import software.amazon.awssdk.auth.credentials.AwsCredentialsProvider;

/**
 * Login and password of the connection that every job gets in its environment. Spark copies AWS_ACCESS_KEY_ID and its
 * kin into its configuration, where people and logs can see them; this name it does not know.
 */
public final class ConnectionCredentials implements AwsCredentialsProvider {

    private static final String VARIABLE = "CDC_LAKEHOUSE_CONN_STORAGE";

    private final AwsCredentials credentials = read(System.getenv(VARIABLE));

    @Override
    public AwsCredentials resolveCredentials() {
        return credentials;
    }

    private static AwsCredentials read(String text) {
        try {
            JsonNode connection = new ObjectMapper().readTree(text == null ? "{}" : text);
            String login = connection.path("login").asText(), password = connection.path("password").asText();
            if (login.isEmpty() || password.isEmpty()) {
                throw new IllegalStateException(VARIABLE + " in this process's environment has no login and password");
            }
            String authority = connection.path("extra").path("ca_pem").asText();
            if (!authority.isEmpty()) {
                // Here, because S3A asks for the login before it makes its first client.
                TrustedAuthorities.add(authority);
            }
            return AwsBasicCredentials.create(login, password);
        } catch (IOException problem) {
            // Not as the cause: it would carry a piece of the text.
            throw new IllegalStateException("the environment variable " + VARIABLE + " is not JSON");
        }
    }
}
