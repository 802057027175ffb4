# Six tests that are MPI programs, as a project's own CMake writes it.
foreach(number RANGE 1 6)
    add_test(ring-${number} mpiexec.mpich -bind-to none -n 2 "@python@" -m mpi4py.bench ringtest -n 1000 -l 30000)
endforeach()
