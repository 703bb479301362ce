/* What cede.h promises, over the loopback. */
#include "cede.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BYTES 3000000u
#define CHECK(what) \
    do { \
        if (!(what)) { \
            fprintf(stderr, "line %d: %s does not hold: %s\n", __LINE__, #what, cede_error()); \
            exit(1); \
        } \
    } while (0)

static unsigned char octet(size_t at)
{
    return (unsigned char)((at * 2654435761u) >> 13);
}

/* Reads everything, answers with its number, and waits until that has arrived. */
static void *serve(void *given)
{
    static unsigned char buffer[70000];
    cede_stream *stream = cede_accept((cede_socket *)given, 10000);
    size_t heard = 0;
    ptrdiff_t size;

    CHECK(stream);
    while ((size = cede_read(stream, buffer, sizeof buffer, 10000)) > 0)
        for (ptrdiff_t k = 0; k < size; k++, heard++)
            CHECK(buffer[k] == octet(heard));
    CHECK(size == 0);
    CHECK(cede_write(stream, &heard, sizeof heard, 10000) == (ptrdiff_t)sizeof heard);
    CHECK(cede_finish(stream, 10000) == 0);
    cede_stream_free(stream);
    return NULL;
}

static void transfer(const char *address, const char *host, const char *controller)
{
    char peer[64], small[4], told[64];
    unsigned char *octets = malloc(BYTES);
    size_t done = 0, heard = 0;
    cede_status status;
    pthread_t server;
    cede_socket *listening = cede_bind(address, NULL), *own = cede_bind(address, "ledbat target=25ms");
    cede_stream *stream;

    CHECK(octets && listening && own && cede_port(listening) > 0 && cede_port(listening) != cede_port(own));
    CHECK(pthread_create(&server, NULL, serve, listening) == 0);
    snprintf(peer, sizeof peer, "%s:%d", host, cede_port(listening));
    stream = cede_connect(own, peer, controller, 10000);
    CHECK(stream);
    CHECK(cede_peer(stream, told, sizeof told) == 0 && strcmp(told, peer) == 0);
    CHECK(cede_peer(stream, small, sizeof small) == CEDE_ERROR && strstr(cede_error(), "take"));
    for (size_t k = 0; k < BYTES; k++)
        octets[k] = octet(k);
    /* Nobody has answered yet. */
    CHECK(cede_read(stream, told, sizeof told, 0) == CEDE_TIMEOUT);
    while (done < BYTES) {
        ptrdiff_t written = cede_write(stream, octets + done, BYTES - done, 10000);
        CHECK(written > 0);
        done += (size_t)written;
    }
    CHECK(cede_finish(stream, 10000) == 0);
    CHECK(cede_get_status(stream, &status) == 0);
    CHECK(status.bytes_acked == BYTES && status.unsent_bytes == 0 && status.cwnd_bytes > 0);
    CHECK(status.srtt_us != CEDE_UNKNOWN && status.rtt_min_us <= status.srtt_us && status.delivery_bits_per_s > 0);
    CHECK(cede_read(stream, &heard, sizeof heard, 10000) == (ptrdiff_t)sizeof heard && heard == BYTES);
    CHECK(cede_read(stream, &heard, sizeof heard, 10000) == 0);
    CHECK(cede_write(stream, "x", 1, 1000) == CEDE_ERROR);
    pthread_join(server, NULL);
    cede_stream_free(stream);
    cede_socket_free(own);
    cede_socket_free(listening);
    free(octets);
}

static void errors(void)
{
    cede_socket *socket = cede_bind("127.0.0.1:0", NULL);
    char busy[64];

    CHECK(socket);
    CHECK(strcmp(cede_error(), "") == 0);
    CHECK(!cede_bind("127.0.0.1:0", "nobody") && strstr(cede_error(), "there are"));
    CHECK(!cede_bind("127.0.0.1:0", "ledbat tarjet=25ms") && strstr(cede_error(), "target"));
    CHECK(!cede_bind("127.0.0.1:0", "ledbat target") && strstr(cede_error(), "PARAMETER=VALUE"));
    CHECK(!cede_bind(NULL, NULL) && strstr(cede_error(), "address is NULL"));
    CHECK(!cede_bind("no address", NULL) && strlen(cede_error()) > 0);
    snprintf(busy, sizeof busy, "127.0.0.1:%d", cede_port(socket));
    CHECK(!cede_bind(busy, NULL) && strstr(cede_error(), "in use"));
    CHECK(!cede_accept(socket, 20) && strstr(cede_error(), "longer"));
    CHECK(!cede_connect(socket, "127.0.0.1:1", "nobody", 1000));
    CHECK(!cede_connect(socket, NULL, NULL, 1000) && strstr(cede_error(), "peer is NULL"));
    /* Nobody listens there: the kernel says so, or time runs out. */
    CHECK(!cede_connect(socket, "127.0.0.1:1", NULL, 2000));
    CHECK(cede_port(NULL) == CEDE_ERROR && cede_read(NULL, busy, 1, 0) == CEDE_ERROR);
    CHECK(cede_finish(NULL, 0) == CEDE_ERROR && cede_get_status(NULL, NULL) == CEDE_ERROR);
    cede_abort(NULL);
    cede_stream_free(NULL);
    cede_socket_free(NULL);
    cede_socket_free(socket);
}

static void *give_up_soon(void *stream)
{
    struct timespec pause = {0, 200000000};

    nanosleep(&pause, NULL);
    cede_abort((cede_stream *)stream);
    return NULL;
}

static void abortion(void)
{
    char peer[64], octets[16];
    cede_socket *listening = cede_bind("127.0.0.1:0", NULL), *own = cede_bind("127.0.0.1:0", NULL);
    cede_stream *near, *far;
    static char lot[1 << 16];
    ptrdiff_t written;
    pthread_t leaver;

    CHECK(listening && own);
    snprintf(peer, sizeof peer, "127.0.0.1:%d", cede_port(listening));
    near = cede_connect(own, peer, NULL, 10000);
    CHECK(near && cede_write(near, "abc", 3, 1000) == 3);
    far = cede_accept(listening, 10000);
    CHECK(far && cede_read(far, octets, sizeof octets, 10000) == 3 && memcmp(octets, "abc", 3) == 0);
    cede_abort(near);
    CHECK(cede_read(far, octets, sizeof octets, 10000) == CEDE_ERROR && strlen(cede_error()) > 0);
    cede_stream_free(far);
    cede_stream_free(near);
    /* What nobody reads cannot arrive, and does not once the reader has given up: that is no reason to wait for ever. */
    near = cede_connect(own, peer, NULL, 10000);
    CHECK(near);
    memset(lot, 7, sizeof lot);
    while ((written = cede_write(near, lot, sizeof lot, 300)) > 0)
        ;
    CHECK(written == CEDE_TIMEOUT);
    far = cede_accept(listening, 10000);
    CHECK(far && cede_finish(near, 20) == CEDE_TIMEOUT);
    CHECK(pthread_create(&leaver, NULL, give_up_soon, far) == 0);
    CHECK(cede_finish(near, 10000) == CEDE_ERROR && strlen(cede_error()) > 0);
    pthread_join(leaver, NULL);
    cede_stream_free(far);
    cede_stream_free(near);
    cede_socket_free(own);
    cede_socket_free(listening);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void *wait_to_read(void *stream)
{
    char octet;

    CHECK(cede_read((cede_stream *)stream, &octet, 1, 3000) == CEDE_TIMEOUT);
    return NULL;
}

/* Whoever waits for its turn waits no longer than it said. */
static void turns(void)
{
    char peer[64], octets[4];
    struct timespec pause = {0, 200000000};
    cede_socket *listening = cede_bind("127.0.0.1:0", NULL), *own = cede_bind("127.0.0.1:0", NULL);
    cede_stream *near;
    cede_status status;
    pthread_t first;
    double began;

    CHECK(listening && own);
    snprintf(peer, sizeof peer, "127.0.0.1:%d", cede_port(listening));
    near = cede_connect(own, peer, NULL, 10000);
    CHECK(near && pthread_create(&first, NULL, wait_to_read, near) == 0);
    nanosleep(&pause, NULL);
    began = seconds();
    CHECK(cede_read(near, octets, sizeof octets, 0) == CEDE_TIMEOUT);
    CHECK(cede_read(near, octets, sizeof octets, 100) == CEDE_TIMEOUT);
    CHECK(cede_write(near, "abc", 3, 1000) == 3);
    CHECK(seconds() - began < 1.5);
    pthread_join(first, NULL);
    cede_abort(near);
    CHECK(cede_read(near, octets, sizeof octets, 1000) == CEDE_ERROR);
    CHECK(cede_get_status(near, &status) == 0 && status.in_flight_bytes == 0);
    cede_stream_free(near);
    cede_socket_free(own);
    cede_socket_free(listening);
}

int main(void)
{
    CHECK(strlen(cede_version()) > 0);
    errors();
    abortion();
    turns();
    transfer("127.0.0.1:0", "127.0.0.1", NULL);
    transfer("127.0.0.1:0", "127.0.0.1", "cede");
    transfer("[::1]:0", "[::1]", "ledbat++");
    puts("all holds");
    return 0;
}
