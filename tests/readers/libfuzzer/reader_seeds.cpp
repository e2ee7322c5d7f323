// reader_seeds READER FOLDER: writes the small valid files that fuzzing begins with.
#include <cstdio>
#include <fstream>

#include "readers/readers.hpp"

int main(int argc, char** argv) {
  if (argc != 3) return std::fputs("reader_seeds READER FOLDER\n", stderr), 2;
  int number = 0;
  for (const std::string& seed : opfuse::readers::seeds_of(argv[1]))
    std::ofstream(std::string(argv[2]) + "/seed" + std::to_string(number++), std::ios::binary) << seed;
  return number > 0 ? 0 : 1;
}
