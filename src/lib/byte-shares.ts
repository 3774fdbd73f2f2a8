export interface ByteBounds {
  /** Most bytes of all tenants together. */
  readonly totalBytes: number;
  /** Most bytes of one tenant. */
  readonly tenantBytes: number;
}

/**
 * Counts the bytes kept for each tenant, and selects the tenant whose oldest data must be evicted.
 */
export class ByteShares {
  readonly #bounds: ByteBounds;
  readonly #ofTenant = new Map<string, number>();
  #total = 0;

  constructor(bounds: ByteBounds) {
    this.#bounds = bounds;
  }

  /** Adds to the tenant's bytes; a negative number subtracts. */
  add(tenant: string, bytes: number): void {
    this.#total += bytes;
    const own = (this.#ofTenant.get(tenant) ?? 0) + bytes;
    if (own > 0) this.#ofTenant.set(tenant, own);
    else this.#ofTenant.delete(tenant);
  }

  /**
   * Returns the tenant whose oldest data must go: this tenant if it exceeds its own limit, else the
   * largest tenant if all together exceed theirs.
   */
  over(tenant: string): string | undefined {
    if ((this.#ofTenant.get(tenant) ?? 0) > this.#bounds.tenantBytes) return tenant;
    if (this.#total <= this.#bounds.totalBytes) return undefined;
    let [loudest, most] = ['', 0];
    for (const [each, bytes] of this.#ofTenant) if (bytes > most) [loudest, most] = [each, bytes];
    return loudest;
  }
}
