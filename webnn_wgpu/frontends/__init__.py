"""What turns files of other kinds into graphs: written against the public interface alone, as any program would be."""
