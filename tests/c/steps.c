#include "c/steps.h"

#include <string.h>

static void append(c_case* run, size_t* used, const void* data, size_t bytes) {
  if (*used + bytes <= run->state_bytes && bytes > 0) memcpy(run->state + *used, data, bytes);
  *used += bytes;
}

static cautious_status take(cautious_optimizer* optimizer, c_case* run) {
  cautious_parameter parameter = CAUTIOUS_PARAMETER;
  cautious_state_tensor piece = CAUTIOUS_STATE_TENSOR;
  cautious_status status;
  size_t tensor, pieces, used = 0;
  parameter.name = "x";
  parameter.rank = 2;
  parameter.shape = run->shape;
  parameter.element = run->element;
  parameter.gradient = run->gradient;
  parameter.x = run->x;
  status = cautious_add(optimizer, &parameter, &tensor);
  for (size_t t = 0; t < run->steps && status == CAUTIOUS_OK; ++t) {
    status = cautious_bind(optimizer, tensor, run->x, run->g[t]);
    if (status == CAUTIOUS_OK) status = cautious_step(optimizer, &run->inputs[t], &run->totals[t]);
    if (status == CAUTIOUS_OK) status = cautious_report_of(optimizer, tensor, &run->tensors[t]);
  }
  if (status == CAUTIOUS_OK) status = cautious_state_count(optimizer, tensor, &pieces);
  for (size_t i = 0; status == CAUTIOUS_OK && i < pieces; ++i) {
    status = cautious_state(optimizer, tensor, i, &piece);
    append(run, &used, piece.name, sizeof piece.name);
    append(run, &used, piece.type, sizeof piece.type);
    append(run, &used, piece.data, piece.bytes);
  }
  run->state_bytes = used;
  return status;
}

cautious_status c_steps(c_case* run) {
  cautious_optimizer* optimizer;
  cautious_status status = cautious_create(run->recipe, run->options, &optimizer);
  if (status == CAUTIOUS_OK) status = take(optimizer, run);
  cautious_destroy(optimizer);
  return status;
}
