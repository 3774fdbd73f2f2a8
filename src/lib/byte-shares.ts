export interface ByteBounds {
  /** All tenants together. */
  readonly totalBytes: number;
  readonly tenantBytes: number;
}

/** Counts bytes by tenant, and selects whose oldest data must be evicted. */
export class ByteShares {
  readonly #bounds: ByteBounds;
  readonly #ofTenant = new Map<string, number>();
  #total = 0;

  constructor(bounds: ByteBounds) {
    this.#bounds = bounds;
  }

  /** May be negative. */
  add(tenant: string, bytes: number): void {
    this.#total += bytes;
    const own = (this.#ofTenant.get(tenant) ?? 0) + bytes;
    if (own > 0) this.#ofTenant.set(tenant, own);
    else this.#ofTenant.delete(tenant);
  }

  /** This tenant if it exceeds its own limit, else the largest if all together exceed theirs. */
  over(tenant: string): string | undefined {
    if ((this.#ofTenant.get(tenant) ?? 0) > this.#bounds.tenantBytes) return tenant;
    if (this.#total <= this.#bounds.totalBytes) return undefined;
    let [loudest, most] = ['', 0];
    for (const [each, bytes] of this.#ofTenant) if (bytes > most) [loudest, most] = [each, bytes];
    return loudest;
  }
}
