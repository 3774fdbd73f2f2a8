import type { Operations } from '../../../services/operations.ts';
import type { TemplateView } from '../../../actors/views.ts';
import { presentPage } from '../present-page.ts';
import { presentTemplate, presentTemplateCluster, presentTemplateDeletion } from './presenter.ts';
import { created, ok, route, versioned, type Answer, type Route } from '../../corridor/route.ts';
import {
  CreateTemplateBody,
  TemplateClusterList,
  TemplateDeletion,
  TemplateEnvelope,
  TemplateListQuery,
  TemplatePage,
  TemplatePath,
  TemplateQuery,
  UpdateTemplateBody,
} from './schema.ts';
import { z } from 'zod';
import { invalidArgument, Refusal } from '../../../model/refusals.ts';
import {
  MAX_TEMPLATE_BYTES,
  SandboxTemplateSchema,
  type SandboxTemplateDocument,
} from '../../../model/templates/template.ts';
import { parseStrictJson } from '../../corridor/strict-json.ts';
import { check } from '../../corridor/validation.ts';

export const templateRoutes = (operations: Operations): readonly Route[] => [
  listTemplates(operations),
  getTemplate(operations),
  createTemplate(operations),
  updateTemplate(operations),
  deleteTemplate(operations),
  listTemplateClusters(operations),
];

const listTemplates = (operations: Operations): Route =>
  route({
    operationId: 'listTemplates',
    method: 'GET',
    path: '/sandbox-templates',
    access: 'tenant',
    summary: 'List templates, newest first',
    query: TemplateListQuery,
    answers: { 200: TemplatePage },
    refusals: [],
    handle: ({ query: { limit, offset } }) =>
      ok(presentPage(operations.listTemplates({ limit, offset }), presentTemplate)),
  });

const getTemplate = (operations: Operations): Route =>
  route({
    operationId: 'getTemplate',
    method: 'GET',
    path: '/sandbox-templates/{name}',
    access: 'tenant',
    summary: 'Get a template',
    params: TemplatePath,
    query: TemplateQuery,
    answers: { 200: TemplateEnvelope },
    versioned: true,
    refusals: ['SANDBOX_TEMPLATE_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ params }) => shown(await operations.getTemplate(params.name)),
  });

const createTemplate = (operations: Operations): Route =>
  route({
    operationId: 'createTemplate',
    method: 'POST',
    path: '/admin/sandbox-templates',
    access: 'admin',
    summary: 'Create a template',
    body: CreateTemplateBody,
    answers: { 201: TemplateEnvelope },
    refusals: ['ALREADY_EXISTS', 'CONFLICT', 'FEATURE_DISABLED', 'UNAVAILABLE'],
    handle: async ({ body: { crdJson, syncSource } }) =>
      created({
        template: presentTemplate(
          await operations.createTemplate(
            templateIn(crdJson),
            syncSource === undefined ? {} : { syncSource },
          ),
        ),
      }),
  });

const updateTemplate = (operations: Operations): Route =>
  route({
    operationId: 'updateTemplate',
    method: 'PUT',
    path: '/admin/sandbox-templates/{name}',
    access: 'admin',
    summary: 'Change a template; omitted fields stay unchanged',
    params: TemplatePath,
    body: UpdateTemplateBody,
    answers: { 200: TemplateEnvelope },
    versioned: true,
    refusals: [
      'SANDBOX_TEMPLATE_NOT_FOUND',
      'CONFLICT',
      'FEATURE_DISABLED',
      'PRECONDITION_FAILED',
      'UNAVAILABLE',
    ],
    handle: async ({
      params,
      body: { crdJson, description, docs, poolSizing, syncSource },
      incoming: { ifMatch },
    }) =>
      shown(
        await operations.updateTemplate(params.name, {
          ifMatch,
          document: crdJson === undefined ? undefined : templateIn(crdJson),
          ...(description === undefined ? {} : { description }),
          ...(docs === undefined ? {} : { docs }),
          ...(poolSizing === undefined ? {} : { poolSizing }),
          syncSource,
        }),
      ),
  });

const deleteTemplate = (operations: Operations): Route =>
  route({
    operationId: 'deleteTemplate',
    method: 'DELETE',
    path: '/admin/sandbox-templates/{name}',
    access: 'admin',
    summary: 'Delete a template that no pool uses',
    params: TemplatePath,
    answers: { 200: TemplateDeletion },
    refusals: ['SANDBOX_TEMPLATE_NOT_FOUND', 'TEMPLATE_IN_USE', 'CONFLICT', 'UNAVAILABLE'],
    handle: async ({ params: { name } }) => {
      await operations.deleteTemplate(name);
      return ok(presentTemplateDeletion(name));
    },
  });

const listTemplateClusters = (operations: Operations): Route =>
  route({
    operationId: 'listTemplateClusters',
    method: 'GET',
    path: '/admin/sandbox-templates/{name}/clusters',
    access: 'admin',
    summary: 'List the state of a global template on each cluster',
    params: TemplatePath,
    answers: { 200: TemplateClusterList },
    refusals: ['SANDBOX_TEMPLATE_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ params: { name } }) => {
      const items = (await operations.templateClusters(name)).map(presentTemplateCluster);
      return ok({ total: items.length, items });
    },
  });

const shown = (view: TemplateView): Answer =>
  versioned(ok({ template: presentTemplate(view) }), view.record.revision);

const FIELD = 'crdJson';
const Enclosed = z.object({ [FIELD]: SandboxTemplateSchema });

/** Refuses unknown fields. Refusals prefix fields with `crdJson.` */
const templateIn = (crdJson: string): SandboxTemplateDocument => {
  if (Buffer.byteLength(crdJson) > MAX_TEMPLATE_BYTES)
    throw new Refusal('PAYLOAD_TOO_LARGE', `${FIELD} is larger than ${MAX_TEMPLATE_BYTES} bytes`);
  return check(Enclosed, { [FIELD]: treeOf(crdJson) })[FIELD];
};

const treeOf = (crdJson: string): unknown => {
  try {
    return parseStrictJson(Buffer.from(crdJson, 'utf8'));
  } catch (error) {
    const field = error instanceof Refusal ? error.detail?.['field'] : undefined;
    if (!(error instanceof Refusal) || typeof field !== 'string') throw error;
    throw invalidArgument(
      field === 'body' ? FIELD : `${FIELD}.${field}`,
      error.message.slice(field.length + 2),
    );
  }
};
