export interface ByteBounds {
  /** The most bytes of all tenants together. */
  readonly totalBytes: number;
  /** The most bytes of one tenant. */
  readonly tenantBytes: number;
}

/**
 * Counts bytes that are kept for tenants, and says whose oldest are to go where they are too many.
 */
export class ByteShares {
  readonly #bounds: ByteBounds;
  readonly #ofTenant = new Map<string, number>();
  #total = 0;

  constructor(bounds: ByteBounds) {
    this.#bounds = bounds;
  }

  /** Counts so many more of the tenant's; fewer where it is negative. */
  add(tenant: string, bytes: number): void {
    this.#total += bytes;
    const own = (this.#ofTenant.get(tenant) ?? 0) + bytes;
    if (own > 0) this.#ofTenant.set(tenant, own);
    else this.#ofTenant.delete(tenant);
  }

  /**
   * Names the tenant whose oldest is to go: this one, where it was given more than one may have;
   * else the loudest one, where all have too much together.
   */
  over(tenant: string): string | undefined {
    if ((this.#ofTenant.get(tenant) ?? 0) > this.#bounds.tenantBytes) return tenant;
    if (this.#total <= this.#bounds.totalBytes) return undefined;
    let [loudest, most] = ['', 0];
    for (const [each, bytes] of this.#ofTenant) if (bytes > most) [loudest, most] = [each, bytes];
    return loudest;
  }
}
