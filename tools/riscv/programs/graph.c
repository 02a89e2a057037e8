/* Graph kernels after the GAP Benchmark Suite, on graphs that are spread over all PEs.
 *
 *     graph KERNEL GRAPH [SCALE [DEGREE]]
 *
 * KERNEL  bfs   breadth-first search: depths. A vertex is claimed by compare-and-swap, and put into its owner's queue.
 *         sssp  shortest paths over weights of 1 to 255: distances, lowered by an atomic minimum.
 *         pr    PageRank, ten rounds in fixed point: what a vertex gives to its neighbours is added atomically.
 *         cc    connected components: the smallest vertex of each, spread by an atomic minimum.
 *         bc    betweenness centrality of one source (Brandes): paths are counted by atomic additions.
 *         tc    triangles: lists of neighbours are fetched and merged; an atomic addition for each PE in the end.
 * GRAPH   kron (Kronecker, as Graph500 and GAP: A 0.57, B and C 0.19) or uniform; 2^SCALE vertices, DEGREE times as many edges,
 *         undirected, without loops and doubles.
 *
 * Vertex v belongs to PE v modulo their number, as its element v divided by it; so do its neighbours. What is printed at the end is
 * a sum over all results that does not depend on the order of anything: a sequential program can say what it must be.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long word;

static const word NEVER = ~0ul;
enum { ROUNDS = 10, FIXED = 40, DAMPING_PERCENT = 85, SHARES = 20 };

static int me, all;
static word vertices, degree;
static unsigned scale;
static int is_kron;

/* Of this PE's vertices: where the neighbours of each begin, and all of them, in order. */
static word mine, *begins, *neighbours;

/* The first of a vertex's neighbours; those of the next one begin where its own end. */
static const word *neighbours_of(word at) { return &neighbours[begins[at]]; }

static word mix(word x) {
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ul;
    x = (x ^ x >> 27) * 0x94d049bb133111ebul;
    return x ^ x >> 31;
}

#ifndef RAE_LOCAL
static int owner(word v) { return (int)(v % (word)all); }
static word slot(word v) { return v / (word)all; }
static word vertex(word at) { return at * (word)all + (word)me; }
#else
/* One address space, as GAP's own programs have it: a vertex is where its number says. */
static int owner(word v) { return (void)v, 0; }
static word slot(word v) { return v; }
static word vertex(word at) { return at; }
#endif

/* What is compared is between these two. Elsewhere there is nothing that notes anything. */
#ifdef RAE_H
enum { BEGIN = 1, END = 2 };
static void mark(int number) { rae_mark(number); }
#else
#define mark(number) (void)0
#endif

/* An atomic minimum: what the word was. OpenSHMEM has none, RAE does. */
static word lower(word *at, word value, int pe) {
#if defined(RAE_H) && !defined(RAE_SOFTWARE)
    return (word)rae_fetch_min_d((int64_t *)at, (int64_t)value, pe);
#else
    for (word old = shmem_ulong_atomic_fetch(at, pe);;) {
        if ((long)old <= (long)value)
            return old;
        word found = shmem_ulong_atomic_compare_swap(at, old, value, pe);
        if (found == old)
            return old;
        old = found;
    }
#endif
}

/* The sum of what all PEs have; everybody gets it. Three words take turns, so that one is cleared while nobody looks at it. */
static word sum_of_all(word value) {
    static word sums[3];
    static int turn;
    int now = turn;
    turn = (turn + 1) % 3;
    if (me == 0)
        sums[turn] = 0;
    shmem_ulong_atomic_add(&sums[now], value, 0);
    shmem_quiet();
    shmem_barrier_all();
    return shmem_ulong_g(&sums[now], 0);
}

/* ---- the graph ---- */

/* Edge i: everybody can say which it is. */
static void edge(word i, word *from, word *to) {
    word u = 0, v = 0, bits = 0;
    if (!is_kron) {
        bits = mix(i * 2 + 1);
        u = bits & (vertices - 1);
        v = bits >> 32 & (vertices - 1);
    } else {
        for (unsigned level = 0; level < scale; level++) {
            if (level % 4 == 0)
                bits = mix((i * 16 + level / 4) * 2 + 1);
            /* Of 65536: A 37355, B and C 12452 each. */
            word draw = bits & 0xffff;
            bits >>= 16;
            u = u << 1 | (draw >= 37355 + 12452);
            v = v << 1 | ((draw >= 37355 && draw < 37355 + 12452) || draw >= 37355 + 2 * 12452);
        }
        /* Vertices of many edges have small numbers: others are given to them. */
        u = u * 0x9e3779b1ul & (vertices - 1);
        v = v * 0x9e3779b1ul & (vertices - 1);
    }
    *from = u;
    *to = v;
}

static word weight(word u, word v) {
    word low = u < v ? u : v, high = u < v ? v : u;
    return 1 + mix(low << 32 | high) % 255;
}

static void sort(word *of, word count) {
    for (word step = count / 2; count > 1;) {
        if (step > 0) {
            step--;
        } else {
            word last = of[--count];
            of[count] = of[0];
            of[0] = last;
        }
        for (word at = step, child; (child = 2 * at + 1) < count; at = child) {
            if (child + 1 < count && of[child + 1] > of[child])
                child++;
            if (of[at] >= of[child])
                break;
            word swap = of[at];
            of[at] = of[child];
            of[child] = swap;
        }
    }
}

static int build(void) {
    mine = (vertices - (word)me + (word)all - 1) / (word)all;
    word most = (vertices + (word)all - 1) / (word)all, u, v, total = 0;
    begins = shmem_calloc(most + 1, sizeof *begins);
    if (!begins)
        return 0;
    for (word i = 0; i < vertices * degree; i++) {
        edge(i, &u, &v);
        if (u == v)
            continue;
        if (owner(u) == me)
            begins[slot(u) + 1]++;
        if (owner(v) == me)
            begins[slot(v) + 1]++;
    }
    for (word at = 0; at < mine; at++)
        begins[at + 1] += begins[at];
    total = begins[mine];
    /* All PEs allocate alike: as much as the one that needs most. */
    static word largest;
    shmem_barrier_all();
    for (word found = shmem_ulong_g(&largest, 0); found < total;) {
        word was = shmem_ulong_atomic_compare_swap(&largest, found, total, 0);
        if (was == found)
            break;
        found = was;
    }
    shmem_barrier_all();
    neighbours = shmem_calloc(shmem_ulong_g(&largest, 0) + 1, sizeof *neighbours);
    word *next = shmem_malloc((most + 1) * sizeof *next);
    if (!neighbours || !next)
        return 0;
    memcpy(next, begins, (most + 1) * sizeof *next);
    for (word i = 0; i < vertices * degree; i++) {
        edge(i, &u, &v);
        if (u == v)
            continue;
        if (owner(u) == me)
            neighbours[next[slot(u)]++] = v;
        if (owner(v) == me)
            neighbours[next[slot(v)]++] = u;
    }
    /* In order, and once each. */
    word kept = 0;
    for (word at = 0; at < mine; at++) {
        word from = begins[at], to = begins[at + 1];
        sort(&neighbours[from], to - from);
        begins[at] = kept;
        for (word i = from; i < to; i++)
            if (i == from || neighbours[i] != neighbours[i - 1])
                neighbours[kept++] = neighbours[i];
    }
    begins[mine] = kept;
    shmem_barrier_all();
    return 1;
}

/* The first vertex that has a neighbour: where searches begin. */
static word source(void) {
    static word first;
    if (me == 0)
        first = (word)INT64_MAX;
    shmem_barrier_all();
    word found = 0;
    while (found < mine && begins[found] == begins[found + 1])
        found++;
    if (found < mine)
        lower(&first, vertex(found), 0);
    shmem_quiet();
    shmem_barrier_all();
    return shmem_ulong_g(&first, 0);
}

/* ---- queues: vertices of one's own, which everybody may add ---- */

struct queue {
    word *items;
    word *count;
};

static int make_queue(struct queue *queue) {
    queue->items = shmem_malloc(((vertices + (word)all - 1) / (word)all + 1) * sizeof *queue->items);
    queue->count = shmem_calloc(1, sizeof *queue->count);
    return queue->items && queue->count;
}

static void put(struct queue *queue, word v) {
    int pe = owner(v);
    word at = shmem_ulong_atomic_fetch_add(queue->count, 1, pe);
    shmem_ulong_p(&queue->items[at], v, pe);
}

static word *array(word with) {
    word count = (vertices + (word)all - 1) / (word)all, *of = shmem_malloc(count * sizeof *of);
    for (word at = 0; of && at < count; at++)
        of[at] = with;
    return of;
}

/* What comes out of a kernel: a word for each of this PE's vertices. */
static word sum_of(const word *results) {
    word sum = 0;
    for (word at = 0; at < mine; at++)
        sum += mix(vertex(at) * 0x9e3779b97f4a7c15ul + results[at]);
    return sum;
}

/* ---- kernels: each gives this PE's part of the sum ---- */

static struct queue now, later;

static void turn_queues(void) {
    struct queue swap = now;
    now = later;
    later = swap;
    *later.count = 0;
    shmem_barrier_all();
}

static word bfs(word from) {
    word *parents = array(NEVER), *depths = array(NEVER);
    shmem_barrier_all();
    if (owner(from) == me) {
        parents[slot(from)] = from;
        put(&now, from);
    }
    shmem_barrier_all();
    for (word depth = 0; sum_of_all(*now.count) > 0; depth++) {
        for (word i = 0; i < *now.count; i++) {
            word u = now.items[i], at = slot(u);
            depths[at] = depth;
            for (const word *n = neighbours_of(at), *end = neighbours_of(at + 1); n < end; n++) {
                word v = *n;
                if (shmem_ulong_atomic_compare_swap(&parents[slot(v)], NEVER, u, owner(v)) == NEVER)
                    put(&later, v);
            }
        }
        shmem_quiet();
        shmem_barrier_all();
        turn_queues();
    }
    return sum_of(depths);
}

static word sssp(word from) {
    word *distances = array((word)INT64_MAX), *waits = array(0);
    shmem_barrier_all();
    if (owner(from) == me) {
        distances[slot(from)] = 0;
        put(&now, from);
    }
    shmem_barrier_all();
    while (sum_of_all(*now.count) > 0) {
        for (word i = 0; i < *now.count; i++) {
            word u = now.items[i], at = slot(u);
            /* From here on whoever lowers it puts it into the queue again. */
            shmem_ulong_atomic_compare_swap(&waits[at], 1, 0, me);
            word here = shmem_ulong_atomic_fetch(&distances[at], me);
            for (const word *n = neighbours_of(at), *end = neighbours_of(at + 1); n < end; n++) {
                word v = *n, there = here + weight(u, v);
                if (lower(&distances[slot(v)], there, owner(v)) <= there)
                    continue;
                if (shmem_ulong_atomic_compare_swap(&waits[slot(v)], 0, 1, owner(v)) == 0)
                    put(&later, v);
            }
        }
        shmem_quiet();
        shmem_barrier_all();
        turn_queues();
    }
    return sum_of(distances);
}

static word pr(void) {
    word one = 1ul << FIXED, base = one * (100 - DAMPING_PERCENT) / 100 / vertices;
    word *scores = array(one / vertices), *coming = array(0);
    shmem_barrier_all();
    for (int round = 0; round < ROUNDS; round++) {
        for (word at = 0; at < mine; at++) {
            word links = begins[at + 1] - begins[at];
            word share = links ? scores[at] / links : 0;
            for (const word *n = neighbours_of(at), *end = neighbours_of(at + 1); n < end; n++)
                shmem_ulong_atomic_add(&coming[slot(*n)], share, owner(*n));
        }
        shmem_quiet();
        shmem_barrier_all();
        for (word at = 0; at < mine; at++) {
            scores[at] = base + coming[at] / 100 * DAMPING_PERCENT;
            coming[at] = 0;
        }
        shmem_barrier_all();
    }
    return sum_of(scores);
}

static word cc(void) {
    word *labels = array(0), *waits = array(1);
    for (word at = 0; at < mine; at++)
        labels[at] = vertex(at);
    shmem_barrier_all();
    for (word at = 0; at < mine; at++)
        put(&now, vertex(at));
    shmem_barrier_all();
    while (sum_of_all(*now.count) > 0) {
        for (word i = 0; i < *now.count; i++) {
            word u = now.items[i], at = slot(u);
            shmem_ulong_atomic_compare_swap(&waits[at], 1, 0, me);
            word label = shmem_ulong_atomic_fetch(&labels[at], me);
            for (const word *n = neighbours_of(at), *end = neighbours_of(at + 1); n < end; n++) {
                word v = *n;
                if (lower(&labels[slot(v)], label, owner(v)) <= label)
                    continue;
                if (shmem_ulong_atomic_compare_swap(&waits[slot(v)], 0, 1, owner(v)) == 0)
                    put(&later, v);
            }
        }
        shmem_quiet();
        shmem_barrier_all();
        turn_queues();
    }
    return sum_of(labels);
}

static word bc(word from) {
    word *depths = array(NEVER), *paths = array(0), *dependencies = array(0);
    /* This PE's vertices by depth: those of depth d begin at levels[d]. */
    word *order = array(0), *levels = shmem_malloc((vertices + 1) * sizeof *levels), visited = 0, depth = 0;
    if (!levels)
        return 0;
    shmem_barrier_all();
    if (owner(from) == me) {
        depths[slot(from)] = 0;
        paths[slot(from)] = 1;
        put(&now, from);
    }
    shmem_barrier_all();
    for (; sum_of_all(*now.count) > 0; depth++) {
        levels[depth] = visited;
        for (word i = 0; i < *now.count; i++) {
            word at = slot(now.items[i]);
            order[visited++] = at;
            for (const word *n = neighbours_of(at), *end = neighbours_of(at + 1); n < end; n++) {
                word v = *n;
                word found = shmem_ulong_atomic_compare_swap(&depths[slot(v)], NEVER, depth + 1, owner(v));
                if (found == NEVER)
                    put(&later, v);
                if (found == NEVER || found == depth + 1)
                    shmem_ulong_atomic_add(&paths[slot(v)], paths[at], owner(v));
            }
        }
        shmem_quiet();
        shmem_barrier_all();
        turn_queues();
    }
    levels[depth] = visited;
    while (depth-- > 0) {
        for (word i = levels[depth]; i < levels[depth + 1]; i++) {
            word at = order[i], sum = 0;
            for (const word *n = neighbours_of(at), *end = neighbours_of(at + 1); n < end; n++) {
                word v = *n;
                if (shmem_ulong_g(&depths[slot(v)], owner(v)) != depth + 1)
                    continue;
                word there = shmem_ulong_g(&dependencies[slot(v)], owner(v));
                sum += paths[at] * ((1ul << SHARES) + there) / shmem_ulong_g(&paths[slot(v)], owner(v));
            }
            dependencies[at] = sum;
        }
        shmem_barrier_all();
    }
    return sum_of(dependencies);
}

static word tc(void) {
    word most = 0, found = 0;
    static word longest;
    for (word at = 0; at < mine; at++)
        if (begins[at + 1] - begins[at] > most)
            most = begins[at + 1] - begins[at];
    shmem_barrier_all();
    for (word was = shmem_ulong_g(&longest, 0); was < most;) {
        word before = shmem_ulong_atomic_compare_swap(&longest, was, most, 0);
        if (before == was)
            break;
        was = before;
    }
    shmem_barrier_all();
    word *theirs = shmem_malloc((shmem_ulong_g(&longest, 0) + 1) * sizeof *theirs), ends[2];
    if (!theirs)
        return 0;
    for (word at = 0; at < mine; at++) {
        word u = vertex(at);
        for (const word *n = neighbours_of(at), *end = neighbours_of(at + 1); n < end && *n < u; n++) {
            word v = *n;
            shmem_getmem(ends, &begins[slot(v)], sizeof ends, owner(v));
            shmem_getmem(theirs, &neighbours[ends[0]], (ends[1] - ends[0]) * sizeof *theirs, owner(v));
            /* Of a triangle u > v > w. */
            for (word i = begins[at], j = 0; j < ends[1] - ends[0] && theirs[j] < v;) {
                word a = neighbours[i], b = theirs[j];
                found += a == b;
                i += a <= b;
                j += b <= a;
            }
        }
    }
    return found;
}

int main(int argc, char **argv) {
    shmem_init();
    me = shmem_my_pe();
    all = shmem_n_pes();
    scale = argc > 3 ? (unsigned)strtoul(argv[3], 0, 10) : 8;
    degree = argc > 4 ? strtoul(argv[4], 0, 10) : 8;
    static const char *const kernels[] = {"bfs", "sssp", "pr", "cc", "bc", "tc"};
    int kernel = 0, is_graph = argc > 2 && (strcmp(argv[2], "kron") == 0 || strcmp(argv[2], "uniform") == 0);
    while (argc > 1 && kernel < 6 && strcmp(argv[1], kernels[kernel]) != 0)
        kernel++;
    if (!is_graph || kernel == 6 || scale < 1 || scale > 30 || degree < 1) {
        if (me == 0)
            puts("graph bfs|sssp|pr|cc|bc|tc kron|uniform [SCALE [DEGREE]], with a SCALE of 1 to 30");
        return 2;
    }
    is_kron = strcmp(argv[2], "kron") == 0;
    vertices = 1ul << scale;
    if (!build() || !make_queue(&now) || !make_queue(&later)) {
        if (me == 0)
            puts("this does not fit into the symmetric heap");
        return 2;
    }
    word from = source(), sum = 0;
    shmem_barrier_all();
    mark(BEGIN);
    shmem_barrier_all();
    switch (kernel) {
    case 0: sum = bfs(from); break;
    case 1: sum = sssp(from); break;
    case 2: sum = pr(); break;
    case 3: sum = cc(); break;
    case 4: sum = bc(from); break;
    case 5: sum = tc(); break;
    }
    shmem_barrier_all();
    mark(END);
    shmem_barrier_all();
    word edges = sum_of_all(begins[mine]);
    sum = sum_of_all(sum);
    if (me == 0)
        printf("%s %s: %d PEs, %lu vertices, %lu edges: %lx\n", argv[1], argv[2], all, vertices, edges / 2, sum);
    shmem_barrier_all();
    /* Not shmem_finalize: Open MPI 4.1 crashes there. */
    shmem_global_exit(0);
}
