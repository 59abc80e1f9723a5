// The activation of ops/activate.py and its gradient, for training on a CPU.
//
// Memory sets the pace, so nothing but the result is written. Forward there are two passes over the
// response, backward two over the response and the gradient that comes in: one for the sums that
// batch normalisation needs, one for the result. What lies between is computed again each time, in
// registers, 16 channels of a pixel at once. Sums are kept image by image, so that they do not
// depend on the number of threads.
//
// Compiled for one rotation dimension N, one type T of features, and the length SHORTEST below
// which a vector counts as zero. A response y is (images, slots, pixels, channels), with f in slots
// 1 to N and chi in the last. If it has one slot alone, that is both f_1 and chi, and the other f_k
// are zero.

#include "floats.h"

namespace {

struct Shape {
  int64_t images, slots, pixels, channels;
  int64_t slot() const { return pixels * channels; }
  int64_t size(int64_t slots) const { return slots * slot(); }
};

// Calls visit(image, offset in a slot, channel) for all points, an image at a time on each thread.
template <class Visit>
void for_each_point(const Shape& shape, int threads, Visit visit) {
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t image = 0; image < shape.images; image++)
    for (int64_t pixel = 0; pixel < shape.pixels; pixel++)
      for (int64_t channel = 0; channel < shape.channels; channel += WIDTH)
        visit(image, pixel * shape.channels + channel, channel);
}

// What the layer makes of its linear map's response at one point, before the norm.
struct Response {
  Floats psi[N];
  Floats inverse;   // of the length of psi, 0 if that is zero
  Floats strength;  // half of that length and half of chi
  Mask somewhere;   // where psi has a direction

  Response(const T* y, const float* bias, const Shape& shape) {
    Floats squares = {}, chi;
    if (shape.slots == 1) {
      chi = load(y);
      for (int k = 0; k < N; k++) psi[k] = load(bias + k * shape.channels);
      psi[0] += chi;
    } else {
      chi = load(y + N * shape.slot());
      for (int k = 0; k < N; k++)
        psi[k] = load(y + k * shape.slot()) + load(bias + k * shape.channels);
    }
    for (int k = 0; k < N; k++) squares += psi[k] * psi[k];
    somewhere = ~(squares < (float)(SHORTEST * SHORTEST));  // true of nan, which is not hidden
    inverse = keep(somewhere, 1 / square_root(squares));
    strength = 0.5f * (squares * inverse) + 0.5f * chi;
  }
};

struct Norm {
  const float *mean, *scale, *weight, *shift;

  Floats normed(int64_t channel, Floats strength) const {
    return (strength - load(mean + channel)) * load(scale + channel);
  }

  Floats lengths(int64_t channel, Floats normed) const {
    return normed * load(weight + channel) + load(shift + channel);
  }
};

// Where a length gets through the ReLU to a vector that has a direction.
Mask gets_through(Floats length, const Response& r) { return ~(length <= 0.0f) & r.somewhere; }

// The gradient that comes in, and what it means for the length m.
struct Gradient {
  Floats z[N];
  Floats along;  // what z sends along psi
  Floats m;      // that and what m sends itself

  Gradient(const T* g, const Response& r, const Shape& shape) {
    along = Floats{};
    for (int k = 0; k < N; k++) {
      z[k] = load(g + k * shape.slot());
      along += z[k] * r.psi[k];
    }
    along *= r.inverse;
    m = along + load(g + N * shape.slot());
  }
};

}  // namespace

extern "C" {

extern const bool suits_processor = true;

// Sums of the strength and of its square: (images, 2, channels), zero before.
void measure(Shape shape, int threads, const T* y, const float* bias, double* sums) {
  for_each_point(shape, threads, [&](int64_t image, int64_t at, int64_t channel) {
    Response r(y + image * shape.size(shape.slots) + at, bias + channel, shape);
    double* own = sums + image * 2 * shape.channels + channel;
    add(own, r.strength);
    add(own + shape.channels, r.strength * r.strength);
  });
}

// Stacked features z and m, (images, N + 1, pixels, channels).
void activate(Shape shape, int threads, const T* y, const float* bias, Norm norm, T* out) {
  for_each_point(shape, threads, [&](int64_t image, int64_t at, int64_t channel) {
    Response r(y + image * shape.size(shape.slots) + at, bias + channel, shape);
    Floats m = norm.lengths(channel, norm.normed(channel, r.strength));
    m = keep(gets_through(m, r), m);
    T* own = out + image * shape.size(N + 1) + at;
    for (int k = 0; k < N; k++) store(own + k * shape.slot(), r.psi[k] * (m * r.inverse));
    store(own + N * shape.slot(), m);
  });
}

// Gradients of the norm's shift and weight: (images, 2, channels), zero before.
void measure_gradient(Shape shape, int threads, const T* y, const float* bias, Norm norm,
                      const T* g, double* sums) {
  for_each_point(shape, threads, [&](int64_t image, int64_t at, int64_t channel) {
    Response r(y + image * shape.size(shape.slots) + at, bias + channel, shape);
    Gradient of(g + image * shape.size(N + 1) + at, r, shape);
    Floats normed = norm.normed(channel, r.strength);
    Floats total = keep(gets_through(norm.lengths(channel, normed), r), of.m);
    double* own = sums + image * 2 * shape.channels + channel;
    add(own, total);
    add(own + shape.channels, total * normed);
  });
}

// Gradients of y, and of the bias image by image: (images, N, channels), zero before. Those of the
// norm, found before, come as means over all points.
void activate_gradient(Shape shape, int threads, const T* y, const float* bias, Norm norm,
                       const T* g, const float* of_shift, const float* of_weight, T* of_y,
                       float* of_bias) {
  for_each_point(shape, threads, [&](int64_t image, int64_t at, int64_t channel) {
    Response r(y + image * shape.size(shape.slots) + at, bias + channel, shape);
    Gradient of(g + image * shape.size(N + 1) + at, r, shape);
    Floats normed = norm.normed(channel, r.strength);
    Floats m = norm.lengths(channel, normed);
    Mask through = gets_through(m, r);
    Floats left = keep(through, of.m) - load(of_shift + channel) - normed * load(of_weight + channel);
    Floats of_chi = 0.5f * load(norm.scale + channel) * load(norm.weight + channel) * left;
    Floats stretch = keep(through, m) * r.inverse;
    Floats pull = (of_chi - stretch * of.along) * r.inverse;
    T* own = of_y + image * shape.size(shape.slots) + at;
    float* own_bias = of_bias + image * N * shape.channels + channel;
    for (int k = 0; k < N; k++) {
      Floats of_psi = stretch * of.z[k] + pull * r.psi[k];
      add(own_bias + k * shape.channels, of_psi);
      if (shape.slots > 1) store(own + k * shape.slot(), of_psi);
      else if (k == 0) store(own, of_psi + of_chi);
    }
    if (shape.slots > 1) store(own + N * shape.slot(), of_chi);
  });
}
}
