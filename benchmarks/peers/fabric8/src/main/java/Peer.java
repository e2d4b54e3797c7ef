import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.dsl.base.ResourceDefinitionContext;
import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * The peer in Java: fabric8's informer, for objects of no known type. It connects, waits for a line, fills its cache,
 * prints how many objects are in it, and stays until the input ends. Arguments: group, version, kind, plural.
 */
public final class Peer {
  public static void main(String[] arguments) throws Exception {
    var resource = new ResourceDefinitionContext.Builder()
        .withGroup(arguments[0])
        .withVersion(arguments[1])
        .withKind(arguments[2])
        .withPlural(arguments[3])
        .withNamespaced(true)
        .build();
    var lines = new BufferedReader(new InputStreamReader(System.in));
    try (var client = new KubernetesClientBuilder().build()) {
      client.getKubernetesVersion();
      System.out.println("ready");
      lines.readLine();
      var informer = client.genericKubernetesResources(resource).inAnyNamespace()
          .runnableInformer(0);
      informer.start().toCompletableFuture().get();
      System.out.println(informer.getStore().list().size());
      while (lines.readLine() != null) { }
    }
  }
}
