// Grinds Ed25519 public keys as an attacker would: P, P + B, P + 2 B ..., with one inversion for 2048 points.
//     grind SECONDS DIGITS Bx By 2dBxBy Px Py
// works for SECONDS of processor time and writes how many keys it tried, how many of them had the same last DIGITS (at most 8)
// base58 characters in their peer id as the 2048th, and that one. Numbers are little-endian hex. Arithmetic modulo 2^255 - 19 in
// five limbs of 51 bits.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef uint64_t u64;
typedef unsigned __int128 u128;
typedef struct { u64 v[5]; } fe;
static const u64 MASK = (1ULL << 51) - 1;

static fe carry(u128 *t) {
    fe r;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 4; i++) { t[i + 1] += (u64)(t[i] >> 51); t[i] = (u64)t[i] & MASK; }
        u128 top = t[4] >> 51; t[4] = (u64)t[4] & MASK; t[0] += top * 19;
    }
    for (int i = 0; i < 5; i++) r.v[i] = (u64)t[i];
    return r;
}
static fe mul(fe a, fe b) {
    u128 t[5];
    u64 b1 = b.v[1] * 19, b2 = b.v[2] * 19, b3 = b.v[3] * 19, b4 = b.v[4] * 19;
    t[0] = (u128)a.v[0]*b.v[0] + (u128)a.v[1]*b4 + (u128)a.v[2]*b3 + (u128)a.v[3]*b2 + (u128)a.v[4]*b1;
    t[1] = (u128)a.v[0]*b.v[1] + (u128)a.v[1]*b.v[0] + (u128)a.v[2]*b4 + (u128)a.v[3]*b3 + (u128)a.v[4]*b2;
    t[2] = (u128)a.v[0]*b.v[2] + (u128)a.v[1]*b.v[1] + (u128)a.v[2]*b.v[0] + (u128)a.v[3]*b4 + (u128)a.v[4]*b3;
    t[3] = (u128)a.v[0]*b.v[3] + (u128)a.v[1]*b.v[2] + (u128)a.v[2]*b.v[1] + (u128)a.v[3]*b.v[0] + (u128)a.v[4]*b4;
    t[4] = (u128)a.v[0]*b.v[4] + (u128)a.v[1]*b.v[3] + (u128)a.v[2]*b.v[2] + (u128)a.v[3]*b.v[1] + (u128)a.v[4]*b.v[0];
    u64 c; fe r;
    t[1] += (u64)(t[0] >> 51); r.v[0] = (u64)t[0] & MASK;
    t[2] += (u64)(t[1] >> 51); r.v[1] = (u64)t[1] & MASK;
    t[3] += (u64)(t[2] >> 51); r.v[2] = (u64)t[2] & MASK;
    t[4] += (u64)(t[3] >> 51); r.v[3] = (u64)t[3] & MASK;
    c = (u64)(t[4] >> 51); r.v[4] = (u64)t[4] & MASK;
    r.v[0] += c * 19; r.v[1] += r.v[0] >> 51; r.v[0] &= MASK;
    return r;
}
static fe add(fe a, fe b) { u128 t[5]; for (int i = 0; i < 5; i++) t[i] = (u128)a.v[i] + b.v[i]; return carry(t); }
static fe sub(fe a, fe b) {  // + 4p
    u128 t[5];
    t[0] = (u128)a.v[0] + 0x1FFFFFFFFFFFB4ULL - b.v[0];
    for (int i = 1; i < 5; i++) t[i] = (u128)a.v[i] + 0x1FFFFFFFFFFFFCULL - b.v[i];
    return carry(t);
}
static fe load(const unsigned char *s) {
    u64 w[4]; memcpy(w, s, 32);
    fe r = {{w[0] & MASK, ((w[0] >> 51) | (w[1] << 13)) & MASK, ((w[1] >> 38) | (w[2] << 26)) & MASK,
             ((w[2] >> 25) | (w[3] << 39)) & MASK, (w[3] >> 12) & MASK}};
    return r;
}
static void store(unsigned char *s, fe a) {
    u128 t[5]; for (int i = 0; i < 5; i++) t[i] = a.v[i];
    a = carry(t);
    u64 q = (a.v[0] + 19) >> 51;
    for (int i = 1; i < 5; i++) q = (a.v[i] + q) >> 51;
    a.v[0] += 19 * q;
    for (int i = 0; i < 4; i++) { a.v[i + 1] += a.v[i] >> 51; a.v[i] &= MASK; }
    a.v[4] &= MASK;
    u64 w[4] = {a.v[0] | (a.v[1] << 51), (a.v[1] >> 13) | (a.v[2] << 38), (a.v[2] >> 26) | (a.v[3] << 25), (a.v[3] >> 39) | (a.v[4] << 12)};
    memcpy(s, w, 32);
}
static fe invert(fe a) {  // a^(p - 2)
    fe r = {{1, 0, 0, 0, 0}};
    for (int bit = 254; bit >= 0; bit--) { r = mul(r, r); if (bit != 2 && bit != 4) r = mul(r, a); }
    return r;
}

typedef struct { fe X, Y, Z, T; } point;
static fe bx, by, bt2;  // of the base point: x, y, and 2 d x y
static point step(point p) {  // add the base point
    fe A = mul(sub(p.Y, p.X), sub(by, bx)), B = mul(add(p.Y, p.X), add(by, bx)), C = mul(p.T, bt2), D = add(p.Z, p.Z);
    fe E = sub(B, A), F = sub(D, C), G = add(D, C), H = add(B, A);
    point r = {mul(E, F), mul(G, H), mul(F, G), mul(E, H)};
    return r;
}
static fe read(const char *hex) {
    unsigned char bytes[32];
    for (int i = 0; i < 32; i++) { unsigned x; sscanf(hex + 2 * i, "%2x", &x); bytes[i] = (unsigned char)x; }
    return load(bytes);
}
static u64 remainder_of(const unsigned char *key, u64 modulus) {  // of the peer id, a big-endian number: a prefix, and the key
    u128 rest = 0x002408011220ULL % modulus;
    for (int k = 0; k < 32; k += 8) { u64 w; memcpy(&w, key + k, 8); rest = ((rest << 64) | __builtin_bswap64(w)) % modulus; }
    return (u64)rest;
}

#define BATCH 2048
int main(int argc, char **argv) {
    if (argc != 8) return 2;
    double seconds = atof(argv[1]);
    u64 modulus = 1; for (int i = 0; i < atoi(argv[2]); i++) modulus *= 58;
    unsigned char low = (unsigned char)((1 << atoi(argv[2])) - 1);  // 58 is even: the last bits of the key must fit first
    bx = read(argv[3]); by = read(argv[4]); bt2 = read(argv[5]);
    fe x = read(argv[6]), y = read(argv[7]), one = {{1, 0, 0, 0, 0}};
    point p = {x, y, one, mul(x, y)};
    static point batch[BATCH]; static fe before[BATCH];
    unsigned char key[32], last[32]; u64 tries = 0, matches = 0, target = 0; int known = 0;
    struct timespec began, now; clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &began);
    do {
        fe product = one;
        for (int i = 0; i < BATCH; i++) { before[i] = product; batch[i] = p; product = mul(product, p.Z); p = step(p); }
        fe inverse = invert(product);
        for (int i = BATCH - 1; i >= 0; i--) {
            fe z = mul(inverse, before[i]); unsigned char sign[32];
            inverse = mul(inverse, batch[i].Z);
            store(key, mul(batch[i].Y, z)); store(sign, mul(batch[i].X, z)); key[31] |= (unsigned char)((sign[0] & 1) << 7);
            if (!known) { known = 1; memcpy(last, key, 32); target = remainder_of(key, modulus); }
            else if (((key[31] ^ last[31]) & low) == 0 && remainder_of(key, modulus) == target) matches++;
            tries++;
        }
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while ((double)(now.tv_sec - began.tv_sec) + 1e-9 * (double)(now.tv_nsec - began.tv_nsec) < seconds);
    printf("%llu %llu ", (unsigned long long)tries, (unsigned long long)matches);
    for (int i = 0; i < 32; i++) printf("%02x", last[i]);
    printf("\n");
    return 0;
}
