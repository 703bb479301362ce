/* What a reader of captures does at least, in C: maps a capture (classic pcap of its own byte order, microseconds, Ethernet), and

     words    finds every packet and adds up three words of its transport header;
     headers  parses headers: VLAN tags, IPv4 with options and fragments, IPv6 without extension headers, TCP with its options down to the
              timestamps, UDP and uTP's fixed header; adds up what it read;
     direct   also keeps 32 octets for each direction of a flow, found by address, port and protocol, and counts each packet's delay from
              the shortest before it: readings of the observer's clock less the sender's stamp.

   Keeps no samples, and makes no report. Prints a sum that depends on all of it, the packets, and the processor time in nanoseconds. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum { RECORD = 16, ETHERNET = 14, TCP = 6, UDP = 17, SLOTS = 1 << 22 };

static uint32_t word(const uint8_t *at) {
    uint32_t raw;
    memcpy(&raw, at, sizeof raw);
    return __builtin_bswap32(raw);
}

static uint32_t half(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }

static uint32_t own(const uint8_t *at) {
    uint32_t raw;
    memcpy(&raw, at, sizeof raw);
    return raw;
}

/* What a packet says; `protocol` is zero where it says nothing. */
struct said {
    uint64_t source, destination; /* Addresses, of IPv6 folded. */
    uint32_t ports, protocol, stamp, echo, seq, ack;
};

/* RFC 7323, section 3.2. */
static int timestamps(const uint8_t *at, const uint8_t *end, struct said *said) {
    while (at < end && *at != 0) {
        if (*at == 1) {
            at++;
            continue;
        }
        if (end - at < 2 || at[1] < 2)
            return 0;
        if (at[0] == 8 && at[1] == 10 && end - at >= 10) {
            said->stamp = word(at + 2);
            said->echo = word(at + 6);
            return 1;
        }
        at += at[1];
    }
    return 0;
}

static void transport(const uint8_t *at, const uint8_t *end, uint32_t protocol, uint64_t time_us, struct said *said) {
    if (protocol == TCP && end - at >= 20) {
        const uint8_t *options_end = at + (at[12] >> 4) * 4;
        said->ports = word(at);
        said->seq = word(at + 4);
        said->ack = word(at + 8);
        if (timestamps(at + 20, options_end < end ? options_end : end, said)) {
            /* In ticks of a millisecond, as nearly everybody has them. */
            said->stamp = (uint32_t)time_us - said->stamp * 1000;
            said->protocol = TCP;
        }
    } else if (protocol == UDP && end - at >= 8 + 20) {
        const uint8_t *utp = at + 8;
        said->ports = word(at);
        if ((utp[0] & 15) == 1 && utp[0] >> 4 <= 4) {
            said->stamp = (uint32_t)time_us - word(utp + 4);
            said->echo = word(utp + 8);
            said->seq = half(utp + 16);
            said->ack = half(utp + 18);
            said->protocol = UDP;
        }
    }
}

static uint64_t folded(const uint8_t *at) {
    return ((uint64_t)word(at) << 32 | word(at + 4)) * 0x9e3779b97f4a7c15u ^ ((uint64_t)word(at + 8) << 32 | word(at + 12));
}

static struct said parse(const uint8_t *at, const uint8_t *end, uint64_t time_us) {
    struct said said = {0};
    if (end - at < ETHERNET)
        return said;
    uint32_t ether_type = half(at + 12);
    at += ETHERNET;
    while ((ether_type == 0x8100 || ether_type == 0x88a8) && end - at >= 4) {
        ether_type = half(at + 2);
        at += 4;
    }
    if (ether_type == 0x0800 && end - at >= 20 && at[0] >> 4 == 4) {
        const uint8_t *payload = at + (at[0] & 15) * 4, *whole = at + half(at + 2);
        if ((half(at + 6) & 0x1fff) == 0 && payload < end) {
            said.source = word(at + 12);
            said.destination = word(at + 16);
            transport(payload, whole < end ? whole : end, at[9], time_us, &said);
        }
    } else if (ether_type == 0x86dd && end - at >= 40) {
        said.source = folded(at + 8);
        said.destination = folded(at + 24);
        transport(at + 40, end, at[6], time_us, &said);
    }
    return said;
}

struct direction {
    uint64_t addresses, sum_us;
    uint32_t ports, protocol, least, packets;
};

static struct direction *find(struct direction *table, const struct said *said) {
    uint64_t addresses = said->source << 32 ^ said->destination;
    uint64_t hash = (addresses ^ (uint64_t)said->ports << 7 ^ said->protocol) * 0x9e3779b97f4a7c15u;
    for (uint64_t slot = hash >> 42;; slot = (slot + 1) % SLOTS) {
        struct direction *found = table + slot;
        if (found->packets == 0) {
            found->addresses = addresses;
            found->ports = said->ports;
            found->protocol = said->protocol;
            found->least = said->stamp;
            return found;
        }
        if (found->addresses == addresses && found->ports == said->ports && found->protocol == said->protocol)
            return found;
    }
}

int main(int argc, char **argv) {
    struct stat about;
    int file = argc > 2 ? open(argv[2], O_RDONLY) : -1;
    if (file < 0 || fstat(file, &about) != 0)
        return 1;
    const uint8_t *capture = mmap(NULL, about.st_size, PROT_READ, MAP_PRIVATE, file, 0);
    struct direction *table = calloc(SLOTS, sizeof *table);
    if (capture == MAP_FAILED || table == NULL)
        return 1;
    int only_words = strcmp(argv[1], "words") == 0, keeps = strcmp(argv[1], "direct") == 0;
    const uint8_t *end = capture + about.st_size;
    uint64_t sum = 0, packets = 0;
    for (const uint8_t *at = capture + 24; end - at >= RECORD; packets++) {
        const uint8_t *frame = at + RECORD;
        uint32_t captured = own(at + 8);
        uint64_t time_us = own(at) * (uint64_t)1000000 + own(at + 4);
        if (captured > end - frame)
            break;
        at = frame + captured;
        if (only_words) {
            if (captured < ETHERNET + 20 + 20)
                break;
            const uint8_t *behind_ip = frame + ETHERNET + (frame[ETHERNET] & 15) * 4;
            sum += word(behind_ip) ^ word(behind_ip + 12) ^ word(behind_ip + 16);
            continue;
        }
        struct said said = parse(frame, at, time_us);
        if (said.protocol == 0)
            continue;
        sum += said.source ^ said.destination ^ said.ports ^ said.stamp ^ said.echo ^ said.seq ^ said.ack;
        if (keeps) {
            struct direction *direction = find(table, &said);
            if ((int32_t)(said.stamp - direction->least) < 0)
                direction->least = said.stamp;
            direction->sum_us += said.stamp - direction->least;
            direction->packets++;
        }
    }
    for (size_t slot = 0; keeps && slot < SLOTS; slot++)
        sum += table[slot].sum_us;
    struct timespec spent;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &spent);
    printf("%llu %llu %lld\n", (unsigned long long)sum, (unsigned long long)packets,
           (long long)spent.tv_sec * 1000000000 + spent.tv_nsec);
    return 0;
}
