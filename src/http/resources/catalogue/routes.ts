import type { Operations } from '../../../services/operations.ts';
import {
  presentCluster,
  presentInstanceType,
  presentList,
  presentStatistics,
  presentVolume,
} from './presenter.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import {
  CatalogueQuery,
  ClusterList,
  FeatureGates,
  InstanceTypeList,
  SandboxStatistics,
  StatisticsQuery,
  VolumeList,
} from './schema.ts';

export const catalogueRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'listInstanceTypes',
    method: 'GET',
    path: '/instancetypes',
    access: 'tenant',
    summary: 'List the instance types for pools',
    query: CatalogueQuery,
    answers: { 200: InstanceTypeList },
    refusals: [],
    handle: () => ok(presentList(operations.listInstanceTypes(), presentInstanceType)),
  }),
  route({
    operationId: 'listVolumes',
    method: 'GET',
    path: '/volumes',
    access: 'tenant',
    summary: "List the volumes that the caller's sandboxes may mount",
    query: CatalogueQuery,
    answers: { 200: VolumeList },
    refusals: ['UNAVAILABLE'],
    handle: async ({ caller }) =>
      ok(presentList(await operations.listVolumes(caller), presentVolume)),
  }),
  route({
    operationId: 'getFeatureGates',
    method: 'GET',
    path: '/feature-gates',
    access: 'tenant',
    summary: 'List the optional features of this deployment',
    answers: { 200: FeatureGates },
    refusals: [],
    handle: () => ok(operations.featureGates()),
  }),
  route({
    operationId: 'listClusters',
    method: 'GET',
    path: '/clusters',
    access: 'tenant',
    summary: 'List clusters',
    answers: { 200: ClusterList },
    refusals: [],
    handle: () => ok(presentList(operations.listClusters(), presentCluster)),
  }),
  route({
    operationId: 'getSandboxStatistics',
    method: 'GET',
    path: '/admin/statistics/sandboxes',
    access: 'admin',
    summary: 'Count the sandboxes of all tenants',
    query: StatisticsQuery,
    answers: { 200: SandboxStatistics },
    refusals: ['UNAVAILABLE'],
    handle: async () => ok(presentStatistics(await operations.sandboxStatistics())),
  }),
];
