import {
  MOST_GLOBAL_CHARACTERS,
  MOST_GLOBAL_TEMPLATES,
  type GlobalTemplate,
  type GlobalTemplateSource,
} from '../../contracts/fleet/global-templates.ts';
import type { Log } from '../../contracts/log.ts';
import { Refusal } from '../../model/refusals.ts';
import { charactersOf, isGlobalHere } from '../../model/templates/global-template.ts';
import type { TemplateRecord } from '../../model/templates/template.ts';
import type { TemplateCatalog } from '../../actors/pool/template-catalog.ts';

export interface GlobalTemplatesDeps {
  readonly catalog: TemplateCatalog;
  readonly log: Log;
}

/** Fits into one message of a link. */
const MOST_OF_ONE = 1_000_000;

/**
 * A manager's templates that are replicated to all its clusters. Only a template's own record says
 * that it is global.
 */
export class GlobalTemplates implements GlobalTemplateSource {
  readonly #deps: GlobalTemplatesDeps;
  readonly #names = new Map<string, string>();
  readonly #followers = new Set<(globalId: string) => void>();

  constructor(deps: GlobalTemplatesDeps) {
    this.#deps = deps;
  }

  /** Call after the templates are loaded. */
  start(): void {
    this.#deps.catalog.follow(({ kind, record }, before) => {
      const isGlobal = kind === 'put' && isGlobalHere(record);
      if (isGlobal) this.#names.set(record.globalId, record.name);
      for (const { globalId } of [before, record].filter((each) => each !== undefined)) {
        if (globalId === undefined || !this.#names.has(globalId)) continue;
        if (!isGlobal || record.globalId !== globalId) this.#names.delete(globalId);
        for (const follower of this.#followers) follower(globalId);
      }
    });
  }

  async list(): Promise<readonly GlobalTemplate[]> {
    await this.#deps.catalog.caughtUp();
    return [...this.#names.keys()].flatMap((globalId) => this.find(globalId) ?? []);
  }

  find(globalId: string): GlobalTemplate | undefined {
    const record = this.#deps.catalog.get(this.#names.get(globalId) ?? '');
    if (!record || !isGlobalHere(record) || record.globalId !== globalId) return undefined;
    if (charactersOf(record) > MOST_OF_ONE) {
      this.#deps.log.warn({ template: record.name }, 'global-template-too-large');
      return undefined;
    }
    const { name, version, createdAt, document, earlier } = record;
    return { globalId, name, version, createdAt, document, ...(earlier ? { earlier } : {}) };
  }

  follow(changed: (globalId: string) => void): () => void {
    this.#followers.add(changed);
    return () => this.#followers.delete(changed);
  }

  /** Refuses with CONFLICT. */
  requireRoom(record: Pick<TemplateRecord, 'name' | 'document' | 'earlier'>): void {
    const others = [...this.#deps.catalog.values()].filter(
      (each) => isGlobalHere(each) && each.name !== record.name,
    );
    if (others.length >= MOST_GLOBAL_TEMPLATES)
      throw new Refusal(
        'CONFLICT',
        `syncSource: ${MOST_GLOBAL_TEMPLATES} templates are global, which is the maximum`,
      );
    const characters = others.reduce((sum, each) => sum + charactersOf(each), charactersOf(record));
    if (charactersOf(record) > MOST_OF_ONE || characters > MOST_GLOBAL_CHARACTERS)
      throw new Refusal(
        'CONFLICT',
        `syncSource: global templates can have ${MOST_GLOBAL_CHARACTERS >> 20} MiB in ` +
          'total, and each of them 1 MB with its earlier versions',
      );
  }
}
