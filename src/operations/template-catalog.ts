import type { RecordChange } from '../contracts/record-store.ts';
import type { TemplateRecord } from '../model/template.ts';

/** The templates in memory, as the store last told of them. */
export class TemplateCatalog {
  readonly #byName = new Map<string, TemplateRecord>();

  learn({ kind, record }: RecordChange<TemplateRecord>): void {
    if (kind === 'put') this.#byName.set(record.name, record);
    else this.#byName.delete(record.name);
  }

  get(name: string): TemplateRecord | undefined { return this.#byName.get(name); }

  /** By name, at most `limit`. */
  list(limit: number): readonly TemplateRecord[] {
    return [...this.#byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, limit);
  }
}
