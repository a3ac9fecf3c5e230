// Checks for tests in C: a failed one is printed and counted, and main() returns the count.
#pragma once

#include <stdio.h>
#include <string.h>

#include <cautious/c.h>

static int checked, failures;

static void check_at(int line, int good, const char* what) {
  ++checked;
  if (good) return;
  ++failures;
  printf("line %d: %s\n  last error: %s\n", line, what, cautious_last_error());
}

static int finish(void) {
  printf("%d checked, %d failures\n", checked, failures);
  return checked == 0 || failures > 0;
}

// `good` is true.
#define CHECK(good) check_at(__LINE__, (good) != 0, #good)
// The call succeeds.
#define OK(call) check_at(__LINE__, (call) == CAUTIOUS_OK, #call)
// The call fails with this status and one line that contains the text.
#define FAILS(call, status, text)                                                                                       \
  check_at(__LINE__, (call) == (status) && strstr(cautious_last_error(), text) && !strchr(cautious_last_error(), '\n'), \
           #call " should be " #status ": " text)

// A vector of f32.
static cautious_parameter vector_of(const char* name, const int64_t* length, float* x, const float* g) {
  cautious_parameter parameter = CAUTIOUS_PARAMETER;
  parameter.name = name;
  parameter.rank = 1;
  parameter.shape = length;
  parameter.x = x;
  parameter.g = g;
  return parameter;
}

// An optimizer with one such vector.
static cautious_optimizer* optimizer_of(const char* recipe, const char* options, const int64_t* length, float* x,
                                        const float* g) {
  cautious_optimizer* made;
  const cautious_parameter parameter = vector_of("x", length, x, g);
  OK(cautious_create(recipe, options, &made));
  OK(cautious_add(made, &parameter, NULL));
  return made;
}
