// Some steps of one tensor through the C interface, for a test in C++ to compare with.
#pragma once

#include <cautious/c.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct c_case {
  const char *recipe, *options;
  cautious_element element, gradient;
  int64_t shape[2];
  void* x;
  const void* const* g;  // one per step
  const cautious_step_input* inputs;
  size_t steps;
  // Results.
  cautious_report *totals, *tensors;  // one per step
  unsigned char* state;               // all pieces: name and type with their zeros, then the data
  size_t state_bytes;                 // room; then what was written
} c_case;

cautious_status c_steps(c_case* run);

#ifdef __cplusplus
}
#endif
