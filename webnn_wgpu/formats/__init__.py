"""Files of WebNN graphs as plain data: the `.webnn` text, its JSON form and files of weights.

Nothing here makes operands or kernels: `frontends.webnn` builds graphs from these documents.
"""
