// Loads a compiled model through the C API, runs it once on zeros and prints the largest value of its first output.
//
//   opfuse compile zoo:resnet18 -o resnet18.opf
//   mcs RunInCSharp.cs && mono RunInCSharp.exe resnet18.opf        (or a .NET project with this one file)
using System;
using System.Runtime.InteropServices;

static class RunInCSharp
{
    [StructLayout(LayoutKind.Sequential)]
    struct Array { public UIntPtr Size; public int Type, Rank; public IntPtr Shape, Data; }

    [StructLayout(LayoutKind.Sequential)]
    struct TensorInfo { public UIntPtr Size; public IntPtr Name; public int Type, Rank; public IntPtr Shape; }

    const string Library = "opfuse_runtime";
    [DllImport(Library)] static extern int opfuse_check_abi(uint abi);
    [DllImport(Library)] static extern IntPtr opfuse_last_error();
    [DllImport(Library)] static extern int opfuse_load(string path, out IntPtr executable);
    [DllImport(Library)] static extern void opfuse_free(IntPtr executable);
    [DllImport(Library)] static extern int opfuse_input_info(IntPtr executable, UIntPtr index, ref TensorInfo info);
    [DllImport(Library)] static extern int opfuse_output_info(IntPtr executable, UIntPtr index, ref TensorInfo info);
    [DllImport(Library)] static extern int opfuse_context_create(IntPtr executable, IntPtr options, out IntPtr context);
    [DllImport(Library)] static extern void opfuse_context_free(IntPtr context);
    [DllImport(Library)] static extern int opfuse_bind(IntPtr context, IntPtr name, ref Array array);
    [DllImport(Library)] static extern int opfuse_run(IntPtr context);
    [DllImport(Library)] static extern int opfuse_output(IntPtr context, IntPtr name, ref Array array);

    static void Check(int status)
    {
        if (status != 0) throw new InvalidOperationException(Marshal.PtrToStringAnsi(opfuse_last_error()));
    }

    static UIntPtr SizeOf<T>() { return (UIntPtr)Marshal.SizeOf(typeof(T)); }

    static int Elements(IntPtr shape, int rank)
    {
        long count = 1;
        for (int i = 0; i < rank; ++i) count *= Marshal.ReadInt64(shape, 8 * i);
        return (int)count;
    }

    static void Main(string[] arguments)
    {
        Check(opfuse_check_abi(1));
        IntPtr model, context;
        Check(opfuse_load(arguments[0], out model));
        Check(opfuse_context_create(model, IntPtr.Zero, out context));

        var input = new TensorInfo { Size = SizeOf<TensorInfo>() };
        Check(opfuse_input_info(model, UIntPtr.Zero, ref input));
        // Pinned for as long as the context uses it.
        var zeros = GCHandle.Alloc(new float[Elements(input.Shape, input.Rank)], GCHandleType.Pinned);
        var given = new Array { Size = SizeOf<Array>(), Type = input.Type, Rank = input.Rank, Shape = input.Shape, Data = zeros.AddrOfPinnedObject() };
        Check(opfuse_bind(context, input.Name, ref given));
        Check(opfuse_run(context));

        var output = new TensorInfo { Size = SizeOf<TensorInfo>() };
        Check(opfuse_output_info(model, UIntPtr.Zero, ref output));
        var result = new Array { Size = SizeOf<Array>() };
        Check(opfuse_output(context, output.Name, ref result));
        var values = new float[Elements(result.Shape, result.Rank)];
        Marshal.Copy(result.Data, values, 0, values.Length);
        int best = 0;
        for (int i = 1; i < values.Length; ++i) if (values[i] > values[best]) best = i;
        Console.WriteLine("{0}: {1} values, the largest is {2} at {3}", Marshal.PtrToStringAnsi(output.Name), values.Length, values[best], best);

        zeros.Free();
        opfuse_context_free(context);
        opfuse_free(model);
    }
}
