import type { Records } from '../contracts/record-store.ts';
import type { TemplateRecord } from '../model/template.ts';

/** The templates in memory, read at start. */
export class TemplateCatalog {
  readonly #records: Records<TemplateRecord>;
  readonly #byName = new Map<string, TemplateRecord>();

  constructor(records: Records<TemplateRecord>) { this.#records = records; }

  async start(): Promise<void> {
    for (const record of await this.#records.list()) this.#byName.set(record.name, record);
  }

  get(name: string): TemplateRecord | undefined { return this.#byName.get(name); }

  /** By name, at most `limit`. */
  list(limit: number): readonly TemplateRecord[] {
    return [...this.#byName.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, limit);
  }
}
