import type { Records } from '../../contracts/record-store.ts';
import { noSuchTemplate } from '../../model/refusals.ts';
import { renderDefinition } from '../../model/pools/render-definition.ts';
import type { TemplateRecord } from '../../model/templates/template.ts';
import type { TemplateOperations } from './template-operations.ts';
import type { TemplateCatalog } from '../../actors/pool/template-catalog.ts';
import type { TemplateView } from '../../actors/views.ts';

/** Operation `GET /sandbox-templates/{name}`. */
export const getTemplate =
  ({
    templates,
  }: {
    readonly templates: Records<TemplateRecord>;
  }): TemplateOperations['getTemplate'] =>
  async (name) => {
    const record = await templates.get(name);
    if (!record) throw noSuchTemplate();
    return templateView(record);
  };

/** Newest first; every user may see them (operation `GET /sandbox-templates`). */
export const listTemplates =
  ({ catalog }: { readonly catalog: TemplateCatalog }): TemplateOperations['listTemplates'] =>
  ({ limit, offset }) => {
    const { records, total } = catalog.page(offset, limit);
    return { items: records.map(templateView), total, limit, offset };
  };

export const templateView = (record: TemplateRecord): TemplateView => ({
  record,
  definition: renderDefinition(record.document.spec),
});
