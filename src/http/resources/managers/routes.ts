import type { Operations } from '../../../services/operations.ts';
import { ok, route, type Route } from '../../corridor/route.ts';
import { presentManagers } from './presenter.ts';
import { Managers, SetManagersBody } from './schema.ts';

export const managerRoutes = (operations: Operations): readonly Route[] => [
  route({
    operationId: 'getManagers',
    method: 'GET',
    path: '/admin/managers',
    access: 'admin',
    summary: "Get a worker's managers, and whether they are cut off",
    answers: { 200: Managers },
    refusals: [],
    handle: () => ok(presentManagers(operations.getManagers())),
  }),
  route({
    operationId: 'setManagers',
    method: 'PUT',
    path: '/admin/managers',
    access: 'admin',
    summary: "Cut a worker's managers off, or admit them again",
    body: SetManagersBody,
    answers: { 200: Managers },
    refusals: ['FORBIDDEN', 'UNAVAILABLE'],
    handle: async ({ caller, body }) =>
      ok(presentManagers(await operations.setManagers(caller, body))),
  }),
];
