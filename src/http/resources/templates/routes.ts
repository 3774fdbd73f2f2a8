import type { Operations } from '../../../services/operations.ts';
import type { TemplateView } from '../../../actors/views.ts';
import { templateIn } from './crd-json.ts';
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

export const templateRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'listTemplates',
    method: 'GET',
    path: '/sandbox-templates',
    access: 'tenant',
    summary: 'List the templates that pools may be made from, newest first',
    query: TemplateListQuery,
    answers: { 200: TemplatePage },
    refusals: [],
    handle: ({ query: { limit, offset } }) =>
      ok(presentPage(operations.listTemplates({ limit, offset }), presentTemplate)),
  }),
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
  }),
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
  }),
  route({
    operationId: 'updateTemplate',
    method: 'PUT',
    path: '/admin/sandbox-templates/{name}',
    access: 'admin',
    summary: 'Change a template; what is not named stays',
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
  }),
  route({
    operationId: 'deleteTemplate',
    method: 'DELETE',
    path: '/admin/sandbox-templates/{name}',
    access: 'admin',
    summary: 'Delete a template that no pool is made from',
    params: TemplatePath,
    answers: { 200: TemplateDeletion },
    refusals: ['SANDBOX_TEMPLATE_NOT_FOUND', 'TEMPLATE_IN_USE', 'CONFLICT', 'UNAVAILABLE'],
    handle: async ({ params: { name } }) => {
      await operations.deleteTemplate(name);
      return ok(presentTemplateDeletion(name));
    },
  }),
  route({
    operationId: 'listTemplateClusters',
    method: 'GET',
    path: '/admin/sandbox-templates/{name}/clusters',
    access: 'admin',
    summary: 'How each cluster of a fleet stands to a global template',
    params: TemplatePath,
    answers: { 200: TemplateClusterList },
    refusals: ['SANDBOX_TEMPLATE_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ params: { name } }) => {
      const items = (await operations.templateClusters(name)).map(presentTemplateCluster);
      return ok({ total: items.length, items });
    },
  }),
];

const shown = (view: TemplateView): Answer =>
  versioned(ok({ template: presentTemplate(view) }), view.record.revision);
