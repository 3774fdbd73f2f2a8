import type { Clock } from '../../contracts/clock.ts';
import type { Records } from '../../contracts/record-store.ts';
import { RecordMirror } from '../runtime/record-mirror.ts';
import { isDnsLabel } from '../../model/identifiers.ts';
import type { TemplateRecord } from '../../model/templates/template.ts';

export interface TemplateCatalogDeps {
  readonly templates: Records<TemplateRecord>;
  readonly clock: Clock;
}

export class TemplateCatalog extends RecordMirror<TemplateRecord> {
  #newestFirst: readonly TemplateRecord[] | undefined;

  constructor({ templates, clock }: TemplateCatalogDeps) {
    super({
      records: templates,
      clock,
      keyOf: ({ name }) => name,
      storeKeyOf: ({ name }) => name,
      mostRemoved: 0,
    });
    this.follow(() => {
      this.#newestFirst = undefined;
    });
  }

  override async lookUp(name: string): Promise<TemplateRecord | undefined> {
    return this.get(name) ?? (isDnsLabel(name) ? await super.lookUp(name) : undefined);
  }

  list(limit: number): readonly TemplateRecord[] {
    return [...this.values()].sort((a, b) => (a.name < b.name ? -1 : 1)).slice(0, limit);
  }

  /** Newest first; for equal times, higher name first. */
  page(
    offset: number,
    limit: number,
  ): { readonly records: readonly TemplateRecord[]; readonly total: number } {
    this.#newestFirst ??= [...this.values()].sort(
      (a, b) => b.createdAt - a.createdAt || (a.name < b.name ? 1 : -1),
    );
    return {
      records: this.#newestFirst.slice(offset, offset + limit),
      total: this.#newestFirst.length,
    };
  }
}
