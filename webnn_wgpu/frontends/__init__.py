"""Ways from other packages' things to graphs and tensors: written against the public interface alone, as any program is."""
