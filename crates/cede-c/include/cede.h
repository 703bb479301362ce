/*
 * cede.h: uTP (BEP 29) with a choice of congestion controllers.
 *
 * Blocking calls, from any thread. A stream may be read by one thread while another writes; two that read take turns, and so do two
 * that write. Nothing here is a file descriptor: all sockets share two threads of the library's own.
 *
 * Whatever fails gives NULL or CEDE_ERROR, and cede_error() says why, to the thread that called. What took longer than
 * `timeout_ms` gives NULL or CEDE_TIMEOUT and can be tried again; a negative `timeout_ms` waits for ever, 0 does not wait.
 * Addresses are "192.0.2.1:7000", "[2001:db8::1]:7000" or "example.org:7000".
 *
 * MIT OR Apache-2.0.
 */
#ifndef CEDE_H
#define CEDE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CEDE_ERROR (-1)
#define CEDE_TIMEOUT (-2)
/* A figure of cede_status that is not known. */
#define CEDE_UNKNOWN UINT64_MAX

/* A UDP socket, and one end of a stream of octets. */
typedef struct cede_socket cede_socket;
typedef struct cede_stream cede_stream;

/* Where a stream stands. */
typedef struct cede_status {
    uint64_t cwnd_bytes;               /* congestion window */
    uint64_t in_flight_bytes;          /* sent, and neither acknowledged nor lost */
    uint64_t unsent_bytes;             /* written, and not sent */
    uint64_t srtt_us;                  /* smoothed round-trip time */
    uint64_t rtt_min_us;               /* the shortest */
    uint64_t queueing_delay_us;        /* what the controller believes in */
    uint64_t delivery_bits_per_s;      /* the rate at which data was delivered last */
    uint64_t bytes_acked;              /* payload that has arrived at the peer */
    uint64_t bytes_received;           /* payload that has arrived here, in order */
    uint64_t retransmissions;          /* packets */
    uint64_t timeouts;                 /* of the retransmission timer */
} cede_status;

/* The release, "0.1.0". */
const char *cede_version(void);

/* Why the last call of this thread failed; "" where none has. Valid until the next one. */
const char *cede_error(void);

/*
 * Opens a socket: "0.0.0.0:7000", "[::]:0". `controller` is that of its streams: a name (`cede list controllers`), with
 * parameters behind it if wanted, "ledbat target=25ms"; NULL for the default, LEDBAT. The default of `cede explain NAME` holds for
 * what is not given.
 */
cede_socket *cede_bind(const char *address, const char *controller);

/* The port that it has. */
int cede_port(const cede_socket *socket);

/* Streams of it go on. No other call may be using it. NULL is allowed. */
void cede_socket_free(cede_socket *socket);

/* A stream to a peer; `controller` as in cede_bind, NULL for the socket's. */
cede_stream *cede_connect(cede_socket *socket, const char *peer, const char *controller, int timeout_ms);

/* The next stream that a peer has opened. */
cede_stream *cede_accept(cede_socket *socket, int timeout_ms);

/* Octets that were read, `size` at most, as soon as there are any; 0 where the peer has ended its direction. */
ptrdiff_t cede_read(cede_stream *stream, void *buffer, size_t size, int timeout_ms);

/* Octets that were taken over, `size` at most; they leave by themselves. */
ptrdiff_t cede_write(cede_stream *stream, const void *octets, size_t size, int timeout_ms);

/*
 * Ends our direction, and waits until all that was written has arrived; 0 where it has. Whoever ends the process without it may
 * lose what is under way.
 */
int cede_finish(cede_stream *stream, int timeout_ms);

/* Gives up at once: the peer gets a reset. */
void cede_abort(cede_stream *stream);

/* Ends both directions in good order, in the background. No other call may be using it. NULL is allowed. */
void cede_stream_free(cede_stream *stream);

/* The peer's address as a text of `size` octets at most, its end included; 0, or CEDE_ERROR where that is too little. */
int cede_peer(const cede_stream *stream, char *text, size_t size);

/* Where the stream stands, or stood when it ended; 0, or CEDE_ERROR once its socket has closed. */
int cede_get_status(const cede_stream *stream, cede_status *status);

#ifdef __cplusplus
}
#endif

#endif
