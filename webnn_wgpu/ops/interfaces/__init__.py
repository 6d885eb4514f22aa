"""What an operator tells the other rooms about itself, one file per concern. `OpDef` has a field for each.

family       the kind of operator: a product, a reduction, ...
elementwise  the formula of an operator that computes element by element
epilogue     how element-wise operators can be fused behind it
movement     where its results find the elements that they are copies of
layout       how it works on operands whose channels come last
precision    how it treats float16 in a graph that asks for float32 between operators
cost         its arithmetic operations and the bytes that it reads and writes
bounds       how far a device's results may be from the reference's

And beside them:

documentation   the text and the signature of the builder's method
"""
