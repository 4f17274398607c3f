# cmake -D PROGRAM=<mpi_train> -D MPIEXEC=<mpirun> -D RANKS_FLAG=-n -D WORK=<scratch> -P ranks.cmake
# Two ranks of MPI train the same bytes as one process. A rank that dies, throws or has another seed ends the run with
# its name, and a run that is resumed ends with the same bytes.
cmake_minimum_required(VERSION 3.25)
# In containers everybody is root, and there may be fewer cores than ranks.
set(ENV{OMPI_ALLOW_RUN_AS_ROOT} 1)
set(ENV{OMPI_ALLOW_RUN_AS_ROOT_CONFIRM} 1)
set(ENV{OMPI_MCA_rmaps_base_oversubscribe} 1)
set(ENV{PRTE_MCA_rmaps_default_mapping_policy} :oversubscribe)
# Open MPI does not free all of its memory.
set(ENV{ASAN_OPTIONS} "$ENV{ASAN_OPTIONS}:detect_leaks=0")
file(REMOVE_RECURSE ${WORK})

# train(ranks folder argument...): 0 ranks: without a launcher. Sets `result` and `text`.
macro(train ranks folder)
  file(MAKE_DIRECTORY ${WORK}/${folder})
  set(launcher)
  if(${ranks} GREATER 0)
    set(launcher ${MPIEXEC} ${RANKS_FLAG} ${ranks})
  endif()
  execute_process(COMMAND ${launcher} ${PROGRAM} ${WORK}/${folder} ${ARGN} TIMEOUT 120
                  RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
endmacro()

function(must_end_well what)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "${what} failed (${result}):\n${text}")
  endif()
endfunction()

# must_say(what part...): the run failed with these texts.
function(must_say what)
  if(result EQUAL 0)
    message(FATAL_ERROR "${what} ended well:\n${text}")
  endif()
  foreach(part IN LISTS ARGN)
    if(NOT text MATCHES "${part}")
      message(FATAL_ERROR "${what} did not say \"${part}\" (${result}):\n${text}")
    endif()
  endforeach()
endfunction()

function(must_equal a b)
  foreach(file network.safetensors model.safetensors)
    file(SHA256 ${WORK}/${a}/${file} hash_a)
    file(SHA256 ${WORK}/${b}/${file} hash_b)
    if(NOT hash_a STREQUAL hash_b)
      message(FATAL_ERROR "${file} of ${a} and ${b} differ")
    endif()
  endforeach()
endfunction()

train(0 alone 4)
must_end_well("training without ranks")
train(2 two 4)
must_end_well("training on two ranks")
must_equal(alone two)
string(REGEX MATCHALL "float epoch 3/3: loss" lines "${text}")
list(LENGTH lines count)
if(NOT count EQUAL 1)
  message(FATAL_ERROR "expected the progress of one rank:\n${text}")
endif()

train(2 killed 4 kill 1 9)
must_say("a killed rank" "rank 1 \\(process [0-9]+ on [^)]*\\) died; the last checkpoint is that of step 8 in")
train(2 killed 4)
must_end_well("resuming after a kill")
must_equal(alone killed)

train(2 thrown 4 throw 1 4)
must_say("a rank that throws" "rank 0 [^:]*: .*rank 1 [^:]* failed: .test. this rank gives up")
train(2 seeds 4 seed 1 0)
must_say("another seed" "rank 1 [^:]* does not fit: 0.weight is")
file(REMOVE_RECURSE ${WORK})
