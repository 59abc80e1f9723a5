// Convolution with 3 x 3 weights, stride 1 and padding 1, by Winograd's minimal filtering F(2x2, 3x3):
// a tile of 2 x 2 outputs takes 16 products where the definition takes 36.
//
// Tiles of 4 x 4 inputs become 16 numbers for each channel (gather); each of the 16 is multiplied by a
// matrix of its own, in which the weights are (multiply); and 16 results become 2 x 2 outputs (scatter).
// That is done for some dozens of tiles at a time, so that all of it stays in a core's own cache.
//
// Maps are (images, height, width, channels), with even sides and channels by the 32.

#include <algorithm>
#include <vector>

#include "floats.h"

namespace {

constexpr int NUMBERS = 16, TILES = 24;  // of a tile; in a band, if the image is not wider
constexpr int ROWS = 12, COLUMNS = 2;    // of the block of a product that is held in registers

struct Maps {
  int64_t images, height, width, inner, outer;
};

// Rows of tiles in one image.
struct Band {
  int64_t image, top, across, tiles;
  int64_t row(int64_t tile) const { return 2 * (top + tile / across); }
  int64_t column(int64_t tile) const { return 2 * (tile % across); }
};

// A matrix for each of the 16 numbers, with space between them: at distances of 4096 bytes they would
// fight for the same few lines of the cache.
struct Planes {
  int64_t plane;
  T* values;
};

void gather(const T* x, Maps maps, Band band, Planes to) {
  const std::vector<T> outside(maps.inner);
  for (int64_t tile = 0; tile < band.tiles; tile++) {
    const T* pixel[4][4];
    for (int i = 0; i < 4; i++)
      for (int j = 0; j < 4; j++) {
        const int64_t row = band.row(tile) + i - 1, column = band.column(tile) + j - 1;
        const bool inside = 0 <= row && row < maps.height && 0 <= column && column < maps.width;
        const int64_t at = (band.image * maps.height + row) * maps.width + column;
        pixel[i][j] = inside ? x + at * maps.inner : outside.data();
      }
    for (int64_t channel = 0; channel < maps.inner; channel += WIDTH) {
      Floats d[4][4];
      for (int j = 0; j < 4; j++) {
        Floats v[4];
        for (int i = 0; i < 4; i++) v[i] = load(pixel[i][j] + channel);
        d[0][j] = v[0] - v[2], d[1][j] = v[1] + v[2], d[2][j] = v[2] - v[1], d[3][j] = v[1] - v[3];
      }
      T* out = to.values + tile * maps.inner + channel;
      for (int i = 0; i < 4; i++, out += 4 * to.plane) {
        store(out, d[i][0] - d[i][2]);
        store(out + to.plane, d[i][1] + d[i][2]);
        store(out + 2 * to.plane, d[i][2] - d[i][1]);
        store(out + 3 * to.plane, d[i][1] - d[i][3]);
      }
    }
  }
}

// A matrix of rows times one of (inner, outer), R rows at a time; those that are left.
template <int R>
int64_t multiply(const T*& a, const T* b, T*& out, int64_t rows, int64_t inner, int64_t outer) {
  for (; rows >= R; rows -= R, a += R * inner, out += R * outer)
    for (int64_t k = 0; k < outer; k += WIDTH * COLUMNS) {
      Floats sum[R][COLUMNS] = {};
      for (int64_t c = 0; c < inner; c++) {
        Floats row[COLUMNS];
        for (int j = 0; j < COLUMNS; j++) row[j] = load(b + c * outer + k + j * WIDTH);
        for (int r = 0; r < R; r++)
          for (int j = 0; j < COLUMNS; j++) sum[r][j] += a[r * inner + c] * row[j];
      }
      for (int r = 0; r < R; r++)
        for (int j = 0; j < COLUMNS; j++) store(out + r * outer + k + j * WIDTH, sum[r][j]);
    }
  return rows;
}

void multiply(Planes from, const T* weight, Maps maps, int64_t tiles, Planes to) {
  const int64_t inner = maps.inner, outer = maps.outer;
  for (int number = 0; number < NUMBERS; number++, weight += inner * outer) {
    const T* a = from.values + number * from.plane;
    T* out = to.values + number * to.plane;
    int64_t left = multiply<ROWS>(a, weight, out, tiles, inner, outer);
    left = multiply<4>(a, weight, out, left, inner, outer);
    multiply<1>(a, weight, out, left, inner, outer);
  }
}

void scatter(Planes from, Maps maps, Band band, T* y) {
  for (int64_t tile = 0; tile < band.tiles; tile++) {
    const int64_t row = band.image * maps.height + band.row(tile);
    T* out = y + (row * maps.width + band.column(tile)) * maps.outer;
    for (int64_t channel = 0; channel < maps.outer; channel += WIDTH, out += WIDTH) {
      Floats d[2][4];
      for (int j = 0; j < 4; j++) {
        const T* at = from.values + j * from.plane + tile * maps.outer + channel;
        Floats v[4];
        for (int i = 0; i < 4; i++) v[i] = load(at + 4 * i * from.plane);
        d[0][j] = v[0] + v[1] + v[2], d[1][j] = v[1] - v[2] - v[3];
      }
      for (int i = 0; i < 2; i++) {
        T* pair = out + i * maps.width * maps.outer;
        store(pair, d[i][0] + d[i][1] + d[i][2]);
        store(pair + maps.outer, d[i][1] - d[i][2] - d[i][3]);
      }
    }
  }
}

}  // namespace

extern "C" {

#ifdef __AVX512F__
extern const bool suits_processor = true;
#else
extern const bool suits_processor = false;  // it has too few registers for a block of a product
#endif

void convolve(Maps maps, int threads, const T* x, const T* weight, T* y) {
  const int64_t across = maps.width / 2, down = maps.height / 2;
  const int64_t deep = std::clamp<int64_t>(TILES / across, 1, down), bands = (down + deep - 1) / deep;
#pragma omp parallel num_threads(threads)
  {
    const int64_t inner = deep * across * maps.inner + WIDTH;
    const int64_t outer = deep * across * maps.outer + WIDTH;
    std::vector<Floats> scratch(NUMBERS * (inner + outer) / WIDTH);  // aligned to lines of the cache
    T* values = reinterpret_cast<T*>(scratch.data());
    const Planes gathered{inner, values}, multiplied{outer, values + NUMBERS * inner};
#pragma omp for schedule(static)
    for (int64_t i = 0; i < maps.images * bands; i++) {
      const int64_t top = i % bands * deep;
      const Band band{i / bands, top, across, std::min(deep, down - top) * across};
      gather(x, maps, band, gathered);
      multiply(gathered, weight, maps, band.tiles, multiplied);
      scatter(multiplied, maps, band, y);
    }
  }
}
}
