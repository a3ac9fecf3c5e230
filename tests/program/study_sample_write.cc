// Writes the sample study into the directory that is named, for tests that are not in C++.
#include "study_sample.h"

int main(int, char** argv) { cautious::study::write_sample(argv[1]); }
