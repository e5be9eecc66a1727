"""TVM: `importer`, `mend`, `fold` read a graph, `lower` makes kernels, `contract`, `schedule`, `math` speed them up."""
