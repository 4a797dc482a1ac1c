/* Stripe arithmetic. Pure. */
#include "data/stripes/geometry.h"

struct mfs_piece mfs_geometry_piece(uint64_t off, uint64_t len, uint32_t stripe_size)
{
    uint32_t in = (uint32_t)(off % stripe_size);
    uint32_t room = stripe_size - in;

    return (struct mfs_piece){
        .stripe = (uint32_t)(off / stripe_size),
        .off = in,
        .len = len < room ? (uint32_t)len : room,
    };
}

uint32_t mfs_geometry_stripes(uint64_t end, uint32_t stripe_size)
{
    return (uint32_t)(end / stripe_size + (end % stripe_size != 0));
}
