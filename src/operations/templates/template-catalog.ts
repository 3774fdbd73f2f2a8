import type { Clock } from '../../contracts/clock.ts';
import type { RecordChange, Records } from '../../contracts/record-store.ts';
import { isDnsLabel } from '../../model/identifiers.ts';
import { SharedReads } from '../../lib/shared-reads.ts';
import type { TemplateRecord } from '../../model/templates/template.ts';

export interface TemplateCatalogDeps {
  readonly templates: Pick<Records<TemplateRecord>, 'get'>;
  readonly clock: Clock;
}

/** The templates in memory, as the store last told of them. */
export class TemplateCatalog {
  readonly #byName = new Map<string, TemplateRecord>();
  readonly #store: Pick<Records<TemplateRecord>, 'get'>;
  readonly #reads: SharedReads<TemplateRecord>;
  /** Newest first; undefined where it is to be made anew. */
  #newestFirst: readonly TemplateRecord[] | undefined;

  constructor({ templates, clock }: TemplateCatalogDeps) {
    this.#store = templates;
    this.#reads = new SharedReads({ clock, read: (name) => templates.get(name) });
  }

  /** Takes what the store reports, in its order: also what `lookUp` and `refresh` have it read. */
  learn({ kind, record }: RecordChange<TemplateRecord>): void {
    if (kind === 'put') this.#byName.set(record.name, record);
    else this.#byName.delete(record.name);
    this.#newestFirst = undefined;
  }

  get(name: string): TemplateRecord | undefined {
    return this.#byName.get(name);
  }

  /** Looks in the store for one that is not known, at most once in 250 ms for all who miss it. */
  async lookUp(name: string): Promise<void> {
    if (this.#byName.has(name) || !isDnsLabel(name)) return;
    await this.#reads.read(name);
  }

  /** Reads one uncached: what is shown of it then is no older than this call. */
  async refresh(name: string): Promise<void> {
    await this.#store.get(name);
  }

  /** By name, at most `limit`. */
  list(limit: number): readonly TemplateRecord[] {
    return [...this.#byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, limit);
  }

  /** Newest first, of one moment the higher name first; and how many there are in all. */
  page(
    offset: number,
    limit: number,
  ): { readonly records: readonly TemplateRecord[]; readonly total: number } {
    this.#newestFirst ??= [...this.#byName.values()].sort(
      (a, b) => b.createdAt - a.createdAt || (a.name < b.name ? 1 : -1),
    );
    return {
      records: this.#newestFirst.slice(offset, offset + limit),
      total: this.#newestFirst.length,
    };
  }
}
