# The BLAS and LAPACK for matrix products, as the target cautious_blas, for the build and for the installed package. It
# must be built on OpenMP: a second pool of threads would fight ours for the cores. OpenBLAS is the default, BLIS works:
#   cmake -DCAUTIOUS_BLAS=blis
set(CAUTIOUS_BLAS openblas CACHE STRING "openblas or blis")
set_property(CACHE CAUTIOUS_BLAS PROPERTY STRINGS openblas blis)
if(NOT CAUTIOUS_BLAS MATCHES "^(openblas|blis)$")
  message(FATAL_ERROR "CAUTIOUS_BLAS is '${CAUTIOUS_BLAS}'; choices: openblas, blis")
endif()

# Debian keeps each build of a BLAS in a folder of its own; elsewhere the usual places are searched.
set(suffixes ${CAUTIOUS_BLAS}-openmp ${CMAKE_LIBRARY_ARCHITECTURE}/${CAUTIOUS_BLAS}-openmp)
find_path(CAUTIOUS_BLAS_INCLUDE cblas.h PATH_SUFFIXES ${suffixes} ${CAUTIOUS_BLAS} REQUIRED)
find_library(CAUTIOUS_BLAS_LIBRARY ${CAUTIOUS_BLAS} PATH_SUFFIXES ${suffixes} REQUIRED)
set(libraries ${CAUTIOUS_BLAS_LIBRARY})
if(CAUTIOUS_BLAS STREQUAL blis)  # has no LAPACK of its own
  find_library(CAUTIOUS_LAPACK_LIBRARY lapack REQUIRED)
  list(APPEND libraries ${CAUTIOUS_LAPACK_LIBRARY})
endif()

add_library(cautious_blas INTERFACE IMPORTED GLOBAL)
target_include_directories(cautious_blas INTERFACE ${CAUTIOUS_BLAS_INCLUDE})
target_link_libraries(cautious_blas INTERFACE ${libraries})
# An RPATH, not a RUNPATH: libraries that we load and that want "the BLAS" must find this one too.
if(UNIX AND NOT APPLE)
  target_link_options(cautious_blas INTERFACE -Wl,--disable-new-dtags)
endif()
