/*
 * Standard input to a peer, or from one: netcat over uTP, by a controller that yields.
 *
 *     copy listen 0.0.0.0:7000 > there
 *     copy send example.org:7000 < here
 */
#include "cede.h"

#include <stdio.h>
#include <string.h>

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, cede_error());
    return 1;
}

static int receive(const char *address)
{
    static char buffer[1 << 16];
    char peer[64];
    ptrdiff_t size;
    cede_socket *socket = cede_bind(address, NULL);
    cede_stream *stream = socket ? cede_accept(socket, -1) : NULL;

    if (!stream)
        return failed(address);
    if (cede_peer(stream, peer, sizeof peer) == 0)
        fprintf(stderr, "from %s\n", peer);
    while ((size = cede_read(stream, buffer, sizeof buffer, -1)) > 0)
        fwrite(buffer, 1, (size_t)size, stdout);
    /* The peer waits for the end of our direction, too. */
    if (size < 0 || cede_finish(stream, 10000) != 0)
        return failed(peer);
    cede_stream_free(stream);
    cede_socket_free(socket);
    return fflush(stdout) == 0 ? 0 : 1;
}

static int give(const char *peer)
{
    static char buffer[1 << 16];
    size_t read;
    cede_status status;
    cede_socket *socket = cede_bind("0.0.0.0:0", "cede");
    cede_stream *stream = socket ? cede_connect(socket, peer, NULL, 10000) : NULL;

    if (!stream)
        return failed(peer);
    while ((read = fread(buffer, 1, sizeof buffer, stdin)) > 0) {
        size_t done = 0;
        while (done < read) {
            ptrdiff_t written = cede_write(stream, buffer + done, read - done, -1);
            if (written < 0)
                return failed(peer);
            done += (size_t)written;
        }
    }
    if (cede_finish(stream, -1) != 0)
        return failed(peer);
    if (cede_get_status(stream, &status) == 0)
        fprintf(stderr, "%llu octets, %llu packets sent again\n", (unsigned long long)status.bytes_acked,
                (unsigned long long)status.retransmissions);
    cede_stream_free(stream);
    cede_socket_free(socket);
    return 0;
}

int main(int count, char **words)
{
    if (count == 3 && strcmp(words[1], "listen") == 0)
        return receive(words[2]);
    if (count == 3 && strcmp(words[1], "send") == 0)
        return give(words[2]);
    fprintf(stderr, "usage: %s listen|send ADDRESS (cede %s)\n", words[0], cede_version());
    return 2;
}
