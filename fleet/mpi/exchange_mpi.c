/* libmemtrace-mpi.so: mt_exchange over MPI. `memtrace fleet` loads it when mpirun or srun started
 * the program; nothing else in memtrace needs MPI. A message is its length, followed by pieces of
 * at most PIECE_BYTES, because counts in MPI are ints. */
#include <mpi.h>

#include "exchange.h"

enum { TAG_LENGTH = 1, TAG_BYTES = 2 };
#define PIECE_BYTES ((size_t)1 << 30)

__attribute__((visibility("default"))) enum mt_status mt_exchange_begin(
    struct mt_exchange *exchange);

static enum mt_status status_of(int result)
{
    return result == MPI_SUCCESS ? MT_OK : MT_ERR_IO;
}

static enum mt_status send_bytes(void *context, uint32_t to, const void *bytes, size_t length)
{
    unsigned long long said = length;
    const char *at = bytes;
    int result = MPI_Send(&said, 1, MPI_UNSIGNED_LONG_LONG, (int)to, TAG_LENGTH, MPI_COMM_WORLD);

    (void)context;
    while (length > 0 && result == MPI_SUCCESS) {
        size_t piece = length < PIECE_BYTES ? length : PIECE_BYTES;

        result = MPI_Send(at, (int)piece, MPI_BYTE, (int)to, TAG_BYTES, MPI_COMM_WORLD);
        at += piece;
        length -= piece;
    }
    return status_of(result);
}

static enum mt_status expect_bytes(void *context, uint32_t from, uint64_t *length)
{
    unsigned long long said = 0;
    int result = MPI_Recv(&said, 1, MPI_UNSIGNED_LONG_LONG, (int)from, TAG_LENGTH, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE);

    (void)context;
    *length = said;
    return status_of(result);
}

static enum mt_status receive_bytes(void *context, uint32_t from, void *bytes, size_t length)
{
    char *at = bytes;
    int result = MPI_SUCCESS;

    (void)context;
    while (length > 0 && result == MPI_SUCCESS) {
        size_t piece = length < PIECE_BYTES ? length : PIECE_BYTES;

        result = MPI_Recv(at, (int)piece, MPI_BYTE, (int)from, TAG_BYTES, MPI_COMM_WORLD,
                          MPI_STATUS_IGNORE);
        at += piece;
        length -= piece;
    }
    return status_of(result);
}

static void finish(void *context)
{
    (void)context;
    MPI_Finalize();
}

static void give_up(void *context, int exit_code)
{
    (void)context;
    MPI_Abort(MPI_COMM_WORLD, exit_code);
}

enum mt_status mt_exchange_begin(struct mt_exchange *exchange)
{
    int rank, size;

    if (MPI_Init(NULL, NULL) != MPI_SUCCESS)
        return MT_ERR_UNSUPPORTED;
    /* Most launchers end the job when a process dies. Where one does not, calls return an error. */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    if (MPI_Comm_rank(MPI_COMM_WORLD, &rank) != MPI_SUCCESS ||
        MPI_Comm_size(MPI_COMM_WORLD, &size) != MPI_SUCCESS)
        return MT_ERR_UNSUPPORTED;
    *exchange = (struct mt_exchange){.rank = (uint32_t)rank,
                                     .size = (uint32_t)size,
                                     .send = send_bytes,
                                     .expect = expect_bytes,
                                     .receive = receive_bytes,
                                     .finish = finish,
                                     .give_up = give_up};
    return MT_OK;
}
