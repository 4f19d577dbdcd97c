// A token server with known timing: OpenAI chat streams for measuring load clients, and a log that is the truth.
//
//   build: gcc -O2 -Wall -Wextra -o tokens tokens.c
//   usage: tokens PORT STEP_US TTFT_US TOKENS [LOG]      (PORT 0: any free one; "port N" is printed when it listens)
//
// One thread, one epoll loop, HTTP/1.1 with keep-alive on the loopback address. Every STEP_US each running stream is sent
// one token, the first one at the first step that is at least TTFT_US after its request was read. STEP_US 0 sends a whole
// answer at once. A request without "stream":true is answered at once. max_tokens and max_completion_tokens shorten
// an answer, never lengthen it.
//
// LOG has one line a request, when it ends: x-request-id (or -), received (the kernel's stamp of the packet that completed
// it), read, first token sent, last token sent, tokens sent, 1 if the answer was sent whole, else 0 (client left), and the
// FNV-1a hash of the request's body. Times are CLOCK_MONOTONIC ns, which all processes of a machine share; 0 where it never came to that.
//
// Rule: nothing blocks. What a socket does not take is kept and sent when it does.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { MAX_FD = 20000, ID_BYTES = 80, MAX_EVENTS = 1024, READ_BYTES = 65536 };

typedef struct { char *at; size_t len, cap; } Bytes;

typedef struct {
    Bytes in, out;
    bool open, running, streams;
    int slot;  // position in running_fds while running
    long sent, tokens;
    uint64_t received_ns, read_ns, first_ns, last_ns, body_hash;
    char id[ID_BYTES];
} Conn;

static Conn conns[MAX_FD];
static int running_fds[MAX_FD], n_running;
static int epoll_fd;
static uint64_t step_ns, ttft_ns;
static long max_tokens;
static FILE *log_file;
static bool log_dirty;
static Bytes stream_head, token_chunk;

static uint64_t clock_ns(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static uint64_t now_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

static void die(const char *what) {
    perror(what);
    exit(1);
}

// ---- bytes -----------------------------------------------------------------------------------------------------------

static void reserve(Bytes *b, size_t more) {
    if (b->len + more <= b->cap) return;
    b->cap = (b->len + more) * 2;
    b->at = realloc(b->at, b->cap);
    if (!b->at) die("memory");
}

static void append(Bytes *b, const char *data, size_t len) {
    reserve(b, len);
    memcpy(b->at + b->len, data, len);
    b->len += len;
}

__attribute__((format(printf, 2, 3))) static void print(Bytes *b, const char *format, ...) {
    va_list args;
    va_start(args, format);
    char *text;
    int len = vasprintf(&text, format, args);
    va_end(args);
    if (len < 0) die("memory");
    append(b, text, len);
    free(text);
}

static void drop_front(Bytes *b, size_t len) {
    b->len -= len;
    memmove(b->at, b->at + len, b->len);
}

static void release(Bytes *b) {
    free(b->at);
    *b = (Bytes){0};
}

// ---- sockets ---------------------------------------------------------------------------------------------------------

static void watch(int fd, uint32_t events, int how) {
    struct epoll_event event = {.events = events, .data.fd = fd};
    if (epoll_ctl(epoll_fd, how, fd, &event)) die("epoll_ctl");
}

// Sends now what the socket takes; the rest waits for EPOLLOUT. Errors are left to the read that will see them too.
static void flush_out(int fd) {
    Conn *c = &conns[fd];
    ssize_t n = send(fd, c->out.at, c->out.len, MSG_NOSIGNAL);
    if (n > 0) drop_front(&c->out, n);
    if (c->out.len == 0) watch(fd, EPOLLIN, EPOLL_CTL_MOD);
}

static void push(int fd, const char *data, size_t len) {
    Conn *c = &conns[fd];
    if (c->out.len == 0) {
        ssize_t n = send(fd, data, len, MSG_NOSIGNAL);
        if (n == (ssize_t)len || (n < 0 && errno != EAGAIN)) return;
        if (n > 0) data += n, len -= n;
        watch(fd, EPOLLIN | EPOLLOUT, EPOLL_CTL_MOD);
    }
    append(&c->out, data, len);
}

// Reads once. Returns recvmsg's result and leaves the kernel's stamp, moved to the monotonic clock, in *received_ns.
static ssize_t receive(int fd, Bytes *in, uint64_t *received_ns) {
    reserve(in, READ_BYTES);
    char control[CMSG_SPACE(sizeof(struct timespec))];
    struct iovec part = {in->at + in->len, READ_BYTES};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(fd, &message, 0);
    if (n <= 0) return n;
    in->len += n;
    uint64_t mono = now_ns(), wall = clock_ns(CLOCK_REALTIME);
    *received_ns = mono;
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPNS) {
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(c), sizeof stamp);
        *received_ns = mono - (wall - (stamp.tv_sec * 1000000000ull + stamp.tv_nsec));
    }
    return n;
}

// ---- answers ---------------------------------------------------------------------------------------------------------

static const char EVENT_FACTS[] =
    "\"id\":\"chatcmpl-0123456789abcdef\",\"object\":\"chat.completion.chunk\",\"created\":1764400000,\"model\":\"tokens\"";

static void http_chunk(Bytes *to, const Bytes *data) {
    print(to, "%zx\r\n", data->len);
    append(to, data->at, data->len);
    append(to, "\r\n", 2);
}

static void prepare(void) {
    print(&stream_head, "HTTP/1.1 200 OK\r\nServer: tokens\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n");
    Bytes data = {0};
    print(&data, "data: {%s,\"choices\":[{\"index\":0,\"delta\":{\"content\":\" token\"},\"logprobs\":null,"
                 "\"finish_reason\":null}]}\n\n", EVENT_FACTS);
    http_chunk(&token_chunk, &data);
    release(&data);
}

// The end of a stream of n tokens: finish reason, usage, end mark.
static void tail(Bytes *to, long n) {
    Bytes data = {0};
    print(&data, "data: {%s,\"choices\":[{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\"}]}\n\n",
          EVENT_FACTS);
    print(&data, "data: {%s,\"choices\":[],\"usage\":{\"prompt_tokens\":128,\"completion_tokens\":%ld,"
                 "\"total_tokens\":%ld}}\n\ndata: [DONE]\n\n", EVENT_FACTS, n, n + 128);
    http_chunk(to, &data);
    append(to, "0\r\n\r\n", 5);
    release(&data);
}

static void send_json(int fd, const char *status, const Bytes *body) {
    Bytes all = {0};
    print(&all, "HTTP/1.1 %s\r\nServer: tokens\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", status,
          body->len);
    append(&all, body->at, body->len);
    push(fd, all.at, all.len);
    release(&all);
}

static void finish(int fd, bool whole) {
    Conn *c = &conns[fd];
    if (c->running) {
        c->running = false;
        running_fds[c->slot] = running_fds[--n_running];
        conns[running_fds[c->slot]].slot = c->slot;
    }
    if (!log_file) return;
    fprintf(log_file, "%s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %ld %d %016" PRIx64 "\n", c->id, c->received_ns,
            c->read_ns, c->first_ns, c->last_ns, c->sent, whole, c->body_hash);
    log_dirty = true;
}

static void answer_whole(int fd) {
    Conn *c = &conns[fd];
    Bytes body = {0};
    print(&body, "{\"id\":\"chatcmpl-0\",\"object\":\"chat.completion\",\"created\":1764400000,\"model\":\"tokens\","
                 "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"");
    for (long i = 0; i < c->tokens; i++) append(&body, " token", 6);
    print(&body, "\"},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":128,\"completion_tokens\":%ld,"
                 "\"total_tokens\":%ld}}", c->tokens, c->tokens + 128);
    c->first_ns = c->last_ns = now_ns();
    send_json(fd, "200 OK", &body);
    c->sent = c->tokens;
    release(&body);
    finish(fd, true);
}

static void stream_at_once(int fd) {
    Conn *c = &conns[fd];
    static Bytes all;  // reused for its memory
    all.len = 0;
    append(&all, stream_head.at, stream_head.len);
    for (long i = 0; i < c->tokens; i++) append(&all, token_chunk.at, token_chunk.len);
    tail(&all, c->tokens);
    c->first_ns = c->last_ns = now_ns();
    push(fd, all.at, all.len);
    c->sent = c->tokens;
    finish(fd, true);
}

// The head travels with the first token: one packet, one stamp.
static void push_first(int fd) {
    static Bytes first;
    if (first.len == 0) {
        append(&first, stream_head.at, stream_head.len);
        append(&first, token_chunk.at, token_chunk.len);
    }
    push(fd, first.at, first.len);
}

static void push_tail(int fd, long n) {
    Bytes end = {0};
    tail(&end, n);
    push(fd, end.at, end.len);
    release(&end);
}

static void send_token(int fd) {
    Conn *c = &conns[fd];
    c->last_ns = now_ns();
    if (c->sent++ == 0) {
        c->first_ns = c->last_ns;
        push_first(fd);
    } else
        push(fd, token_chunk.at, token_chunk.len);
    if (c->sent < c->tokens) return;
    push_tail(fd, c->tokens);
    finish(fd, true);
}

// One step: every stream that is due gets one token. Backwards, because a stream that ends is replaced by the last one.
static void step(int timer_fd) {
    uint64_t expirations;
    if (read(timer_fd, &expirations, sizeof expirations) < 0) return;
    uint64_t t = now_ns();
    for (int i = n_running - 1; i >= 0; i--)
        if (t - conns[running_fds[i]].read_ns >= ttft_ns) send_token(running_fds[i]);
}

// ---- requests --------------------------------------------------------------------------------------------------------

static long asked_tokens(const char *body) {
    static const char *const names[] = {"\"max_completion_tokens\":", "\"max_tokens\":"};
    for (int i = 0; i < 2; i++) {
        const char *at = strstr(body, names[i]);
        long n = at ? atol(at + strlen(names[i])) : 0;
        if (n > 0 && n < max_tokens) return n;
    }
    return max_tokens;
}

static uint64_t fnv1a(const char *data, size_t len) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < len; i++) hash = (hash ^ (unsigned char)data[i]) * 1099511628211u;
    return hash;
}

static void start(int fd, const char *body, size_t body_bytes) {
    Conn *c = &conns[fd];
    c->body_hash = fnv1a(body, body_bytes);
    c->streams = strstr(body, "\"stream\":true") || strstr(body, "\"stream\": true");
    c->tokens = asked_tokens(body);
    c->sent = 0;
    c->first_ns = c->last_ns = 0;
    if (!c->streams) return answer_whole(fd);
    if (step_ns == 0) return stream_at_once(fd);
    c->running = true;
    c->slot = n_running;
    running_fds[n_running++] = fd;
}

static void answer_get(int fd, const char *head) {
    Bytes body = {0};
    const char *status = "200 OK";
    if (!strncmp(head, "GET /v1/models ", 15))
        print(&body, "{\"object\":\"list\",\"data\":[{\"id\":\"tokens\",\"object\":\"model\",\"owned_by\":\"loadstone\"}]}");
    else if (!strncmp(head, "GET /health ", 12))
        print(&body, "{}");
    else {
        status = "404 Not Found";
        print(&body, "{\"error\":{\"message\":\"no such path\",\"type\":\"not_found\",\"code\":404}}");
    }
    send_json(fd, status, &body);
    release(&body);
}

static const char *header(const char *head, const char *name) {
    const char *at = strcasestr(head, name);
    return at ? at + strlen(name) : NULL;
}

// Takes one whole request off the front of what was read. False when none is whole yet.
// The head and the body are closed with a NUL in turn; the byte under it is put back.
static bool take_request(int fd, uint64_t received_ns, uint64_t read_ns) {
    Conn *c = &conns[fd];
    char *end = memmem(c->in.at, c->in.len, "\r\n\r\n", 4);
    if (!end) return false;
    *end = 0;
    const char *length = header(c->in.at, "\r\ncontent-length:"), *id = header(c->in.at, "\r\nx-request-id:");
    size_t head_bytes = end + 4 - c->in.at, body_bytes = length ? strtoul(length, NULL, 10) : 0;
    bool whole = c->in.len >= head_bytes + body_bytes, get = !strncmp(c->in.at, "GET ", 4);
    if (whole && get) answer_get(fd, c->in.at);
    if (whole && !get && (!id || sscanf(id, " %79[^\r\n ]", c->id) != 1)) strcpy(c->id, "-");
    *end = '\r';
    if (!whole) return false;
    if (!get) {
        c->received_ns = received_ns;
        c->read_ns = read_ns;
        reserve(&c->in, 1);
        char *close = c->in.at + head_bytes + body_bytes, saved = *close;
        *close = 0;
        start(fd, c->in.at + head_bytes, body_bytes);
        *close = saved;
    }
    drop_front(&c->in, head_bytes + body_bytes);
    return true;
}

static void close_conn(int fd) {
    Conn *c = &conns[fd];
    if (c->running) finish(fd, false);
    release(&c->in);
    release(&c->out);
    close(fd);
    c->open = false;
}

static void read_requests(int fd) {
    Conn *c = &conns[fd];
    uint64_t received_ns = 0;
    ssize_t n;
    while ((n = receive(fd, &c->in, &received_ns)) == READ_BYTES) continue;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) return close_conn(fd);
    // For clients that do not pipeline: a request sent while an answer runs is looked at when more bytes come.
    while (!c->running && c->in.len && take_request(fd, received_ns, now_ns())) continue;
}

static void accept_all(int listener) {
    int one = 1, fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        if (fd >= MAX_FD) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        conns[fd] = (Conn){.open = true};
        watch(fd, EPOLLIN, EPOLL_CTL_ADD);
    }
}

// ---- the loop --------------------------------------------------------------------------------------------------------

// Stamps are asked for on the listener: the sockets it accepts inherit that, so the very first packet has one too.
static int listen_on(int port) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof one);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (void *)&a, sizeof a) || listen(fd, 4096)) die("listen");
    socklen_t size = sizeof a;
    getsockname(fd, (void *)&a, &size);
    printf("port %d\n", ntohs(a.sin_port));
    fflush(stdout);
    return fd;
}

static int step_timer(void) {
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct timespec every = {step_ns / 1000000000, step_ns % 1000000000};
    struct itimerspec when = {.it_interval = every, .it_value = every};
    if (fd < 0 || timerfd_settime(fd, 0, &when, NULL)) die("timerfd");
    return fd;
}

static volatile sig_atomic_t stopped;
static void stop(int signal) { stopped = signal; }

static void serve(int listener, int timer) {
    struct epoll_event events[MAX_EVENTS];
    while (!stopped) {
        if (log_dirty && n_running == 0) log_dirty = fflush(log_file) != 0;  // when idle, so that it costs no stream anything
        int n = epoll_wait(epoll_fd, events, MAX_EVENTS, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) accept_all(fd);
            else if (fd == timer) step(fd);
            else {
                if (events[i].events & EPOLLOUT) flush_out(fd);
                if (events[i].events & ~EPOLLOUT) read_requests(fd);
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: tokens PORT STEP_US TTFT_US TOKENS [LOG]\n");
        return 2;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM);  // no server outlives the benchmark that started it
    struct sigaction on_stop = {.sa_handler = stop};
    sigaction(SIGTERM, &on_stop, NULL);
    sigaction(SIGINT, &on_stop, NULL);
    step_ns = strtoull(argv[2], NULL, 10) * 1000;
    ttft_ns = strtoull(argv[3], NULL, 10) * 1000;
    max_tokens = atol(argv[4]);
    if (argc > 5 && !(log_file = fopen(argv[5], "w"))) die(argv[5]);
    if (log_file) setvbuf(log_file, NULL, _IOFBF, 1 << 20);
    prepare();
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    int listener = listen_on(atoi(argv[1])), timer = step_ns ? step_timer() : -1;
    watch(listener, EPOLLIN, EPOLL_CTL_ADD);
    if (timer >= 0) watch(timer, EPOLLIN, EPOLL_CTL_ADD);
    serve(listener, timer);
    for (int fd = 0; fd < MAX_FD; fd++)
        if (conns[fd].open) close_conn(fd);
    return log_file ? fclose(log_file) != 0 : 0;
}
