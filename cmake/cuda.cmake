# nvcc where it is installed, and how it compiles src/kernels/cuda.cu: into cautious::torch with CAUTIOUS_CUDA=ON, and
# for the test guard.cuda.
find_program(CAUTIOUS_NVCC nvcc PATHS /usr/local/cuda/bin)
set(CAUTIOUS_CUDA_ARCHITECTURES 80 90 CACHE STRING "GPUs to compile for, oldest first; newer ones translate its PTX")

# The arithmetic of docs/spec.md: denormals are zeros, nothing is fused by itself, quotients and roots are rounded to
# nearest. Lambdas of rules and decays are implicitly constexpr and run on the device as such.
list(GET CAUTIOUS_CUDA_ARCHITECTURES 0 oldest)
list(TRANSFORM CAUTIOUS_CUDA_ARCHITECTURES PREPEND sm_ OUTPUT_VARIABLE code)
list(JOIN code "," code)
set(CAUTIOUS_CUDA_FLAGS
  -std=c++20 --expt-relaxed-constexpr -ftz=true -fmad=false -prec-div=true -prec-sqrt=true -Werror=all-warnings
  -Xcompiler=-fPIC,-ffp-contract=off -DCAUTIOUS_ISA=cuda -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
  -arch=compute_${oldest} -code=${code},compute_${oldest} -ccbin=${CMAKE_CXX_COMPILER})

if(CAUTIOUS_CUDA AND NOT CAUTIOUS_TORCH)
  message(FATAL_ERROR "CAUTIOUS_CUDA=ON is for cautious::torch; set CAUTIOUS_TORCH=ON as well")
endif()
if(CAUTIOUS_CUDA AND NOT CAUTIOUS_NVCC)
  message(FATAL_ERROR "CAUTIOUS_CUDA=ON needs nvcc; install the CUDA toolkit, or set CAUTIOUS_NVCC to the path of nvcc")
endif()

# Adds the kernels to a target.
function(cautious_cuda_kernels target)
  set(source ${PROJECT_SOURCE_DIR}/src/kernels/cuda.cu)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/cuda.o)
  add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d VERBATIM
    COMMAND ${CAUTIOUS_NVCC} ${CAUTIOUS_CUDA_FLAGS} -O3 -MD -MF ${object}.d -c ${source} -o ${object})
  find_package(CUDAToolkit REQUIRED)
  target_sources(${target} PRIVATE ${object})
  target_link_libraries(${target} PRIVATE CUDA::cudart)
  target_compile_definitions(${target} PRIVATE CAUTIOUS_HAS_CUDA)
endfunction()
