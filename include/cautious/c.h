// The C interface (C99): the optimizer over raw buffers of <cautious/optimizer.h>, with its bits. Recipes and options are text,
// as everywhere; docs/spec.md says what they mean and docs/c.md how to link. Models, training and libtorch are not here.
//
// A function that can fail returns a status, and cautious_last_error() has the reason. No exception leaves the library. A null
// pointer is CAUTIOUS_USAGE unless the comment allows it. An optimizer belongs to one thread at a time; two are independent.
#ifndef CAUTIOUS_C_H
#define CAUTIOUS_C_H

// NOLINTBEGIN(modernize-*,readability-identifier-naming): this file is C
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAUTIOUS_VERSION_MAJOR 0
#define CAUTIOUS_VERSION_MINOR 2
#define CAUTIOUS_VERSION_PATCH 0
// Changes when a program must be compiled again; also the number in libcautious.so.1.
#define CAUTIOUS_ABI 1

// Who has to act; the numbers are the exit codes of the program `cautious`.
typedef int cautious_status;
enum {
  CAUTIOUS_OK = 0,
  CAUTIOUS_FAILURE = 1,  // the machine: memory, disk, or a fault of the library
  CAUTIOUS_USAGE = 2,    // the caller: an argument, a name, a value
  CAUTIOUS_DATA = 3      // the owner of a file's or buffer's content
};

// Element type of a buffer. bf16 is the upper half of an f32, in 16 bits.
typedef int cautious_element;
enum { CAUTIOUS_F32 = 0, CAUTIOUS_F64 = 1, CAUTIOUS_BF16 = 2 };

// Version of the library in use, "0.2.0"; the macros above are of the header.
const char* cautious_version(void);
// CAUTIOUS_USAGE unless `abi`, the caller's CAUTIOUS_ABI, is the library's. For programs that load it by name: the dynamic
// linker checks all others.
cautious_status cautious_check_abi(int abi);
// One line about the calling thread's last call that failed; "" if none has. Valid until the thread's next call that fails.
const char* cautious_last_error(void);

typedef struct cautious_optimizer cautious_optimizer;

// recipe: "adamw decay=cautious weight_decay=0.1". options: "moments=bf16 rounding=stochastic seed=7 threads=2", the fields of
// cautious::Options; null: all defaults. *made is null after a failure.
cautious_status cautious_create(const char* recipe, const char* options, cautious_optimizer** made);
// Matrices to one recipe, the rest to another; vectors and scalars do not decay. A matrix with a side above max_side (an
// embedding) belongs to the rest; 0: no limit. The same recipe twice is "no decay on vectors".
cautious_status cautious_create_matrices_and_rest(const char* matrices, const char* rest, int64_t max_side, const char* options,
                                                  cautious_optimizer** made);
void cautious_destroy(cautious_optimizer* optimizer);  // may be null

// Structs begin with their size and grow at the end. Start from the macro, then set what differs.

// A caller's tensor. x and g stay the caller's and must outlive the next step; a null g leaves the tensor out of a step. Name,
// shape and strides are copied.
typedef struct cautious_parameter {
  size_t size;
  const char* name;           // unique
  size_t rank;                // number of sides
  const int64_t* shape;       // rank sides; may be null if rank is 0
  const int64_t* strides;     // of x and g, in elements; null: dense, row after row. Anything else is refused
  cautious_element element;   // of x
  cautious_element gradient;  // of g: x's, or f32 beside bf16
  void* x;
  const void* g;
} cautious_parameter;
#define CAUTIOUS_PARAMETER \
  { sizeof(cautious_parameter), NULL, 0, NULL, NULL, CAUTIOUS_F32, CAUTIOUS_F32, NULL, NULL }

// *tensor is the index for the functions below: 0, 1, ...; may be null. The starting value becomes the anchor where the decay
// has one.
cautious_status cautious_add(cautious_optimizer* optimizer, const cautious_parameter* parameter, size_t* tensor);
// Other buffers of the same shape and types, as when gradients are allocated anew. g may be null.
cautious_status cautious_bind(cautious_optimizer* optimizer, size_t tensor, void* x, const void* g);
// Replaces the anchor; x0 has the shape and element type of x and is copied.
cautious_status cautious_set_anchor(cautious_optimizer* optimizer, size_t tensor, const void* x0);
// Density of the random decay from the next step on.
cautious_status cautious_set_density(cautious_optimizer* optimizer, size_t tensor, double density);

typedef struct cautious_step_input {
  size_t size;
  double lr;
  double lr_max;                 // peak of the schedule; needed by the couplings corrected and independent
  double decay_factor;           // of a weight-decay schedule
  const double* tensor_factors;  // one more factor for the weight decay of each tensor; null: 1
} cautious_step_input;
#define CAUTIOUS_STEP_INPUT \
  { sizeof(cautious_step_input), 0, 0, 1, NULL }

// What a step did to one tensor or to all. Everything refers to the parameters before the step; sums and their roots are zero
// under norms=off.
typedef struct cautious_report {
  size_t size;
  // of the step
  int64_t step;       // steps taken, this one included unless skipped
  int skipped;        // 1: a non-finite gradient under nonfinite=skip
  double clip_scale;  // what global-norm clipping multiplied the gradients by
  // of the tensor or the total
  int64_t count;        // coordinates; 0 for a tensor without gradient
  int64_t decayed;      // coordinates that decayed
  int64_t active;       // coordinates with u * x > 0, whatever the decay
  int64_t nonfinite;    // NaN or infinite gradient entries
  double ratio;         // decayed / count; NaN if empty
  double ratio_strict;  // active / count, the paper's r_t
  double x2, g2, u2;    // sums of squares; g as given, before clipping
  double rms_x, rms_g, rms_u;
  double budget;  // sum of |lr wd x| over decayed coordinates
} cautious_report;
#define CAUTIOUS_REPORT \
  { sizeof(cautious_report), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

// One step of every tensor that has a gradient; `total` may be null. A step that fails has changed nothing.
cautious_status cautious_step(cautious_optimizer* optimizer, const cautious_step_input* input, cautious_report* total);
// The same about one tensor, after a step that did not fail.
cautious_status cautious_report_of(const cautious_optimizer* optimizer, size_t tensor, cautious_report* report);

cautious_status cautious_size(const cautious_optimizer* optimizer, size_t* tensors);
// Name of the tensor's group: "all", or "matrices", "rest", "vectors"; valid as long as the optimizer.
cautious_status cautious_group_of(const cautious_optimizer* optimizer, size_t tensor, const char** group);

// State as one safetensors file. Loading checks names, shapes, types and recipes first and changes nothing unless all fit;
// continuing is then bitwise the same as never having stopped.
cautious_status cautious_save(const cautious_optimizer* optimizer, const char* path);
cautious_status cautious_load(cautious_optimizer* optimizer, const char* path);

// For a program that keeps the state in a format of its own: the pieces of a tensor's state, to be read or written in place,
// then t of the bias corrections. The memory is the optimizer's.
typedef struct cautious_state_tensor {
  size_t size;
  char name[16];  // "m", "v", "low" (split rounding) or "x0" (anchor)
  char type[8];   // "F32", "F64", "BF16", "I16"
  void* data;     // null if the tensor is empty
  size_t bytes;
} cautious_state_tensor;
#define CAUTIOUS_STATE_TENSOR \
  { sizeof(cautious_state_tensor), "", "", NULL, 0 }

cautious_status cautious_state_count(const cautious_optimizer* optimizer, size_t tensor, size_t* count);
cautious_status cautious_state(const cautious_optimizer* optimizer, size_t tensor, size_t index, cautious_state_tensor* state);
cautious_status cautious_steps_of(const cautious_optimizer* optimizer, size_t tensor, int64_t* t);
cautious_status cautious_set_steps(cautious_optimizer* optimizer, size_t tensor, int64_t t);

// Replaces the rows x cols matrix (row after row, f32 or f64) by its orthogonal factor. how: "schedule=polar-express
// scale=rms", the fields of cautious::Polar; null: all defaults. threads: 0 is OpenMP's default.
cautious_status cautious_polar(cautious_element element, void* matrix, int64_t rows, int64_t cols, const char* how,
                               int threads);

#ifdef __cplusplus
}
#endif
// NOLINTEND(modernize-*,readability-identifier-naming)

#endif
