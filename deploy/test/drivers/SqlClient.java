import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.Timestamp;
import java.util.Properties;

/** Asks as DBeaver and Metabase do: for tables and columns, then for rows. Prints one value a line. */
public class SqlClient {
  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    properties.put("user", "gamenet_analyst");
    properties.put("password", System.getenv("SQL_PASSWORD"));
    String url = "jdbc:clickhouse://127.0.0.1:" + System.getenv("SQL_PORT") + "/gamenet_analyst";
    try (Connection connection = DriverManager.getConnection(url, properties)) {
      System.out.println(connection.getMetaData().getDatabaseProductName());
      print(connection.getMetaData().getTables(null, "gamenet_analyst", "title_count", null), "TABLE_TYPE");
      print(connection.getMetaData().getColumns(null, "gamenet_analyst", "title_count", "%"), "COLUMN_NAME");
      String sql = "SELECT count() AS samples FROM title_count WHERE title_id = ? AND observed_at >= ?";
      try (PreparedStatement statement = connection.prepareStatement(sql)) {
        statement.setString(1, "4d530064");
        statement.setTimestamp(2, Timestamp.valueOf("2025-03-01 00:00:00"));
        print(statement.executeQuery(), "samples");
      }
    }
  }

  private static void print(ResultSet rows, String column) throws Exception {
    while (rows.next()) System.out.println(rows.getString(column));
  }
}
