"""The interfaces of operators: the facts that passes and planner read from them. `OpDef` has a field for each interface.

* `family`: the kind of operator, for example a product or a reduction
* `elementwise`: the formula of an operator that computes element by element
* `epilogue`: the fusion of element-wise operators behind it
* `movement`: the elements of an operand that its results copy
* `layout`: its form for operands with channels last
* `precision`: its treatment of float16 in a graph that asks for float32 between operators
* `cost`: its arithmetic operations and the bytes that it reads and writes
* `bounds`: the maximum permitted error of a device's results
* `gradient`: the rule that adds the operators of its gradient to a graph
* `documentation`: the text and the signature of the builder's method, which only the generator reads
"""
