import type { TemplateRecord } from '../model/template.ts';

/** The templates in memory, as they were read at start. */
export class TemplateCatalog {
  readonly #byName = new Map<string, TemplateRecord>();

  fill(records: readonly TemplateRecord[]): void {
    for (const record of records) this.#byName.set(record.name, record);
  }

  get(name: string): TemplateRecord | undefined { return this.#byName.get(name); }

  /** By name, at most `limit`. */
  list(limit: number): readonly TemplateRecord[] {
    return [...this.#byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, limit);
  }
}
