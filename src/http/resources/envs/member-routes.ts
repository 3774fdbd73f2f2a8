import { wordRevisionOf } from '../../../model/envs/env.ts';
import type { Operations } from '../../../services/operations.ts';
import {
  presentDecision,
  presentGroup,
  presentGroupEnvelope,
  presentMemberEnvelope,
  presentMemberPool,
} from './presenter.ts';
import { presentListedPool } from '../pools/presenter.ts';
import { created, ok, route, versioned, type Route } from '../../corridor/route.ts';
import {
  GroupDeletion,
  GroupEnvelope,
  GroupList,
  ScalingDecisionList,
  UpdateGroupBody,
} from './group-schema.ts';
import {
  AddMemberBody,
  DeleteEnvQuery,
  EnvDeletion,
  EnvPath,
  GroupPath,
  MemberEnvelope,
  MemberList,
  MemberPath,
  UpdateMemberBody,
} from './schema.ts';

export const envMemberRoutes = (operations: Operations): readonly Route[] => [
  addMember(operations),
  listMembers(operations),
  updateMember(operations),
  deleteMember(operations),
  listGroups(operations),
  getGroup(operations),
  listDecisions(operations),
  updateGroup(operations),
  deleteGroup(operations),
];

const addMember = (operations: Operations): Route =>
  route({
    operationId: 'addMember',
    method: 'POST',
    path: '/envs/{name}/sandboxpools',
    access: 'tenant',
    summary: 'Add a member to an env: a pool, and the settings that size it',
    params: EnvPath,
    body: AddMemberBody,
    answers: { 201: MemberEnvelope },
    refusals: [
      'FORBIDDEN',
      'ENV_NOT_FOUND',
      'CLUSTER_NOT_FOUND',
      'CLUSTER_UNAVAILABLE',
      'SANDBOX_TEMPLATE_NOT_FOUND',
      'ALREADY_EXISTS',
      'CONFLICT',
      'QUOTA_EXCEEDED',
      'FEATURE_DISABLED',
      'UNAVAILABLE',
    ],
    effect: {
      kind: 'recorded',
      find: async ({ caller, params }, mark) => {
        const found = await operations.findMemberByKey(caller, params.name, mark);
        return found && created(presentMemberEnvelope(found));
      },
    },
    handle: async ({ caller, params, body: { name, clusterID, replicas, ...config }, keyed }) =>
      created(
        presentMemberEnvelope(
          await operations.addMember(caller, params.name, {
            name,
            clusterId: clusterID,
            replicas,
            config,
            mark: keyed?.mark,
          }),
        ),
      ),
  });

const listMembers = (operations: Operations): Route =>
  route({
    operationId: 'listMembers',
    method: 'GET',
    path: '/envs/{name}/sandboxpools',
    access: 'tenant',
    summary: "List the pools of an env's members",
    params: EnvPath,
    answers: { 200: MemberList },
    refusals: ['ENV_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params }) => {
      const pools = await operations.listMembers(caller, params.name);
      return ok({
        items: pools.map((pool) => presentMemberPool(pool, presentListedPool)),
        total: pools.length,
      });
    },
  });

const updateMember = (operations: Operations): Route =>
  route({
    operationId: 'updateMember',
    method: 'PUT',
    path: '/envs/{name}/sandboxpools/{pool}',
    access: 'tenant',
    summary: 'Change a member; omitted fields stay unchanged',
    params: MemberPath,
    body: UpdateMemberBody,
    answers: { 200: MemberEnvelope },
    versioned: true,
    refusals: [
      'FORBIDDEN',
      'ENV_NOT_FOUND',
      'ENV_MEMBER_NOT_FOUND',
      'CLUSTER_UNAVAILABLE',
      'SANDBOX_TEMPLATE_NOT_FOUND',
      'CONFLICT',
      'PRECONDITION_FAILED',
      'QUOTA_EXCEEDED',
      'FEATURE_DISABLED',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, params, body: { replicas, ...config }, incoming }) => {
      const view = await operations.updateMember(
        caller,
        { env: params.name, member: params.pool },
        {
          replicas,
          config,
          ifMatch: incoming.ifMatch,
        },
      );
      return versioned(ok(presentMemberEnvelope(view)), wordRevisionOf(view.env));
    },
  });

const deleteMember = (operations: Operations): Route =>
  route({
    operationId: 'deleteMember',
    method: 'DELETE',
    path: '/envs/{name}/sandboxpools/{pool}',
    access: 'tenant',
    summary: 'Delete a member and its pool',
    params: MemberPath,
    query: DeleteEnvQuery,
    rules: { also: ({ query }) => (query.force ? ['deleteSandbox'] : []) },
    answers: { 200: EnvDeletion },
    refusals: ['FORBIDDEN', 'ENV_NOT_FOUND', 'ENV_MEMBER_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params, query }) =>
      ok({
        ...(await operations.deleteMember(
          caller,
          { env: params.name, member: params.pool },
          {
            force: query.force,
          },
        )),
        status: 'Deleting',
      }),
  });

const listGroups = (operations: Operations): Route =>
  route({
    operationId: 'listGroups',
    method: 'GET',
    path: '/envs/{name}/autoscaling/groups',
    access: 'tenant',
    summary: 'List the autoscaling groups of an env',
    params: EnvPath,
    answers: { 200: GroupList },
    refusals: ['ENV_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params }) => {
      const groups = await operations.listGroups(caller, params.name);
      return ok({ items: groups.map(presentGroup), total: groups.length });
    },
  });

const getGroup = (operations: Operations): Route =>
  route({
    operationId: 'getGroup',
    method: 'GET',
    path: '/envs/{name}/autoscaling/groups/{groupName}',
    access: 'tenant',
    summary: 'Get an autoscaling group',
    params: GroupPath,
    answers: { 200: GroupEnvelope },
    versioned: true,
    refusals: ['ENV_NOT_FOUND', 'AUTOSCALING_GROUP_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params }) => {
      const { env, group } = await operations.getGroup(caller, params.name, params.groupName);
      return versioned(ok(presentGroupEnvelope(group)), wordRevisionOf(env));
    },
  });

const listDecisions = (operations: Operations): Route =>
  route({
    operationId: 'listDecisions',
    method: 'GET',
    path: '/envs/{name}/autoscaling/groups/{groupName}/decisions',
    access: 'tenant',
    summary: 'List the last decisions of an autoscaling group, newest first',
    params: GroupPath,
    answers: { 200: ScalingDecisionList },
    refusals: ['ENV_NOT_FOUND', 'AUTOSCALING_GROUP_NOT_FOUND', 'UNAVAILABLE'],
    handle: async ({ caller, params }) => {
      const decisions = await operations.groupDecisions(caller, params.name, params.groupName);
      return ok({ items: decisions.map(presentDecision), total: decisions.length });
    },
  });

const updateGroup = (operations: Operations): Route =>
  route({
    operationId: 'updateGroup',
    method: 'PUT',
    path: '/envs/{name}/autoscaling/groups/{groupName}',
    access: 'tenant',
    summary: 'Change an autoscaling group; omitted fields stay unchanged',
    params: GroupPath,
    body: UpdateGroupBody,
    answers: { 200: GroupEnvelope },
    versioned: true,
    refusals: [
      'FORBIDDEN',
      'ENV_NOT_FOUND',
      'AUTOSCALING_GROUP_NOT_FOUND',
      'CONFLICT',
      'PRECONDITION_FAILED',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, params, body, incoming }) => {
      const { env, group } = await operations.updateGroup(
        caller,
        { env: params.name, group: params.groupName },
        {
          ...body,
          ifMatch: incoming.ifMatch,
        },
      );
      return versioned(ok(presentGroupEnvelope(group)), wordRevisionOf(env));
    },
  });

const deleteGroup = (operations: Operations): Route =>
  route({
    operationId: 'deleteGroup',
    method: 'DELETE',
    path: '/envs/{name}/autoscaling/groups/{groupName}',
    access: 'tenant',
    summary: 'Delete an autoscaling group; its members keep their size',
    params: GroupPath,
    answers: { 200: GroupDeletion },
    refusals: [
      'FORBIDDEN',
      'ENV_NOT_FOUND',
      'AUTOSCALING_GROUP_NOT_FOUND',
      'CONFLICT',
      'UNAVAILABLE',
    ],
    handle: async ({ caller, params }) => {
      await operations.deleteGroup(caller, params.name, params.groupName);
      return ok({ name: params.groupName, status: 'deleted' });
    },
  });
