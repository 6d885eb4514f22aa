"""The only package that talks to wgpu: devices, buffers, pipelines, recording and running."""
