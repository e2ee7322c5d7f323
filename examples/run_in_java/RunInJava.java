// Loads a compiled model through the C API (by JNA), runs it once on zeros and prints the largest value of its first output.
//
//   opfuse compile zoo:resnet18 -o resnet18.opf
//   java -cp /usr/share/java/jna.jar RunInJava.java resnet18.opf        (Debian: libjna-java; elsewhere net.java.dev.jna:jna)
import com.sun.jna.Library;
import com.sun.jna.Memory;
import com.sun.jna.Native;
import com.sun.jna.Pointer;
import com.sun.jna.Structure;
import com.sun.jna.Structure.FieldOrder;
import com.sun.jna.ptr.PointerByReference;

public final class RunInJava {
  @FieldOrder({"size", "type", "rank", "shape", "data"})
  public static class Array extends Structure {
    public long size = size();
    public int type, rank;
    public Pointer shape, data;
  }

  @FieldOrder({"size", "name", "type", "rank", "shape"})
  public static class TensorInfo extends Structure {
    public long size = size();
    public Pointer name;
    public int type, rank;
    public Pointer shape;
  }

  public interface Opfuse extends Library {
    int opfuse_check_abi(int abi);
    String opfuse_last_error();
    int opfuse_load(String path, PointerByReference executable);
    void opfuse_free(Pointer executable);
    int opfuse_input_info(Pointer executable, long index, TensorInfo info);
    int opfuse_output_info(Pointer executable, long index, TensorInfo info);
    int opfuse_context_create(Pointer executable, Pointer options, PointerByReference context);
    void opfuse_context_free(Pointer context);
    int opfuse_bind(Pointer context, Pointer name, Array array);
    int opfuse_run(Pointer context);
    int opfuse_output(Pointer context, Pointer name, Array array);
  }

  private static final Opfuse C = Native.load("opfuse_runtime", Opfuse.class);

  private static void check(int status) {
    if (status != 0) throw new IllegalStateException(C.opfuse_last_error());
  }

  private static int elements(Pointer shape, int rank) {
    int count = 1;
    for (int i = 0; i < rank; ++i) count *= (int) shape.getLong(8L * i);
    return count;
  }

  public static void main(String[] arguments) {
    check(C.opfuse_check_abi(1));
    PointerByReference model = new PointerByReference(), context = new PointerByReference();
    check(C.opfuse_load(arguments[0], model));
    check(C.opfuse_context_create(model.getValue(), null, context));

    TensorInfo input = new TensorInfo();
    check(C.opfuse_input_info(model.getValue(), 0, input));
    Memory zeros = new Memory(4L * elements(input.shape, input.rank)); // outside of the heap: the collector moves nothing
    zeros.clear();
    Array given = new Array();
    given.type = input.type;
    given.rank = input.rank;
    given.shape = input.shape;
    given.data = zeros;
    check(C.opfuse_bind(context.getValue(), input.name, given));
    check(C.opfuse_run(context.getValue()));

    TensorInfo output = new TensorInfo();
    check(C.opfuse_output_info(model.getValue(), 0, output));
    Array result = new Array();
    check(C.opfuse_output(context.getValue(), output.name, result));
    float[] values = result.data.getFloatArray(0, elements(result.shape, result.rank));
    int best = 0;
    for (int i = 1; i < values.length; ++i) if (values[i] > values[best]) best = i;
    System.out.printf("%s: %d values, the largest is %s at %d%n", output.name.getString(0), values.length, values[best], best);

    C.opfuse_context_free(context.getValue());
    C.opfuse_free(model.getValue());
  }
}
